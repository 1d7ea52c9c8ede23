// A document as text: sections under their titles, figures and tables aligned, plots as a line of blocks. What only a
// page has room for (Section::folded) is left out. Or as Markdown, for a README, a pull request or notes.
#pragma once

#include <functional>
#include <string>

#include "traces/report/document/document.h"

namespace stagewright {

struct DocumentTextOptions {
    bool colour = false;
    // The picture of the timeline, for Marks that are empty; others are listed.
    std::function<std::string(const document::Marks&)> timeline = {};
    bool markdown = false;
};
std::string documentText(const document::Document& document, const DocumentTextOptions& options);
std::string sectionText(const document::Section& section, const Units& units, const DocumentTextOptions& options);

std::string inLine(std::string title);          // "Sender waits" → "sender waits", "TFLOP" as it is
std::string shortened(const std::string& name); // to 56 characters, with an ellipsis

namespace document {
std::string plotText(const Plot& plot); // a line of blocks for each series; "" where it is empty
} // namespace document

} // namespace stagewright
