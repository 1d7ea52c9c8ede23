// Lesson prose as rich text: the part of Markdown that lessons use (paragraphs, lists, headings, emphasis, code), with
// the first mention of each glossary term as a link "term:ID".
#pragma once

#include <set>
#include <string>

#include <QString>

namespace stagewright {

// linked: ids already linked; new ones are added. Null: no links.
QString lessonHtml(const QString& markdown, std::set<std::string>* linked = nullptr);
QString withExpectedTime(const QString& text, double seconds); // "Run it (about 10 s)"; 0 s: unknown, the text alone
QString plainWords(const QString& markdown);                   // without marks, for accessible names

} // namespace stagewright
