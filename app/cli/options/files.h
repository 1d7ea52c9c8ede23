// Reading whole files, and finding programs.
#pragma once

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "schedules/base/result.h"
#include "schedules/text/csv.h"

namespace stagewright {

// a CSV of 2,048 ranks and 16.8 million ops has 150 MB
inline constexpr std::size_t mostTextBytes = std::size_t{512} << 20;

// A text from a file or a pipe, in parts.
class TextFile {
public:
    static Result<TextFile> open(const std::string& path); // "-": stdin
    // At most `size` bytes; 0: the end, also where reading failed.
    std::size_t read(char* to, std::size_t size);
    // Unreadable: reading failed, there was a zero byte, or there were more than mostTextBytes.
    const std::optional<Error>& problem() const { return m_problem; }

private:
    explicit TextFile(std::string path) : m_path(std::move(path)) {}
    std::string m_path;
    std::ifstream m_file;
    std::size_t m_read = 0;
    std::optional<Error> m_problem;
};

Result<std::string> readFile(const std::string& path); // as a whole
// named like the file; "-": stdin
Result<Schedule> readCsvFile(const std::string& path, const CsvOptions& options = {});
bool fileExists(const std::string& path);
bool isFolder(const std::string& path);
// A program of this installation: next to this one, else found on PATH; "" if there is none.
std::string siblingProgram(const std::string& name);

} // namespace stagewright
