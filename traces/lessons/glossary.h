// The glossary: every term on screen with its definition, its names in other tools and related terms. Read from
// docs/glossary.md, which is built into the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright::lessons {

struct Term {
    std::string id;                   // "interleaving"
    std::string name;                 // "Interleaving"
    std::vector<std::string> aliases; // "VPP (Megatron-LM)", "looped schedule" …
    std::string definition;           // plain words, a few sentences
    std::vector<std::string> related; // ids
    std::string lesson;               // id of the lesson that teaches it; "": none
};

const std::vector<Term>& glossary(); // by name
// By id, name or alias (with or without the tool in brackets), in any case, singular or plural; null: none.
const Term* findTerm(std::string_view words);

// Mentions of terms in a text, longest first, each term once; positions in bytes. A word that is also a verb counts
// where an article, a number or the like makes it a noun: "the run" is a mention, "they run" is not.
struct Mention {
    std::size_t begin = 0;
    std::size_t length = 0;
    const Term* term = nullptr;
};
std::vector<Mention> mentionsIn(std::string_view text);

// "## name", "Also: a; b", paragraphs, "See: a, b", "Lesson: id". Errors (Unreadable) name line and remedy.
Result<std::vector<Term>> readGlossary(std::string_view text);

} // namespace stagewright::lessons
