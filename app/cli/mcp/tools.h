// What may be asked over the Model Context Protocol: tools with their arguments, and the call of this program that
// answers each. Files are named within folders that were allowed; nothing is written unless a folder for it was.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/mcp/sources.h"
#include "schedules/base/result.h"

namespace stagewright {

struct McpFolders {
    std::vector<std::string> read; // existing ones, absolute; a file is in one of them, links followed
    std::string write;             // ""; else the one folder that files are written to
};

struct McpArgument {
    std::string_view name; // "file"
    enum class Type : std::uint8_t { Text, Whole, Number, Texts, File } type = Type::Text;
    bool required = false;
    std::string_view help; // a sentence
};

struct McpTool {
    std::string_view name;  // "report"
    std::string_view title; // "Explain a run"
    std::string_view help;  // what it answers, and what to ask next
    std::vector<McpArgument> arguments;
    bool writes = false; // offered only with a folder to write to
    // The words of the call behind the program's name, without --json; the arguments have their types, and files are
    // absolute.
    std::function<std::vector<std::string>(const nlohmann::ordered_json& arguments, const McpFolders& folders)> words;
    std::vector<std::string_view> keeps; // members of the answer; empty: all of it
    bool text = false;                   // it answers in text instead of JSON
    // What else is done with what is kept, before it is cut.
    std::function<Result<void>(nlohmann::ordered_json& answer, const nlohmann::ordered_json& arguments,
                               const AskRows& rows)>
        finish = {};
};

std::span<const McpTool> mcpTools();
nlohmann::ordered_json schemaOf(const McpTool& tool); // of its arguments, as JSON Schema
// The arguments checked, files resolved. Usage: what is wrong with which, in a sentence; also a file outside the
// folders.
Result<nlohmann::ordered_json> checkedArguments(const McpTool& tool, const nlohmann::ordered_json& given,
                                                const McpFolders& folders);

} // namespace stagewright
