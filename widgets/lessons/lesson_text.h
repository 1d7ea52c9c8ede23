// Lesson prose as rich text: the part of Markdown that lessons use (paragraphs, lists, headings, emphasis, code), with the first
// mention of each term of the glossary as a link "term:ID".
#pragma once

#include <set>
#include <string>

#include <QString>

namespace stagewright {

// linked: ids that are linked already; those linked here are added. Null: no links.
QString lessonHtml(const QString& markdown, std::set<std::string>* linked = nullptr);
QString plainWords(const QString& markdown); // without marks, for accessible names

} // namespace stagewright
