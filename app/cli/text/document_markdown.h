// A document as Markdown: sections under headings, figures as a list, tables with pipes, plots and the timeline as text
// in a block of code.
#pragma once

#include "app/cli/text/document_text.h"

namespace stagewright::document {

std::string markdownOf(const Document& document, const DocumentTextOptions& options);

} // namespace stagewright::document
