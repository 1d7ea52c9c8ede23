#include "app/cli/progress_line.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>

#include "app/cli/text/json.h"
#include "app/version/version.h"
#include "schedules/base/shown_text.h"
#include "schedules/base/standard_streams.h"

namespace stagewright {

using namespace std::chrono_literals;

ProgressLine::ProgressLine(Mode mode, std::string verb, bool colour, const std::string& file)
    : m_mode(mode), m_colour(colour), m_begin(std::chrono::steady_clock::now())
{
    if (mode == Mode::JsonLines && !file.empty()) m_file = std::fopen(file.c_str(), "ae");
    event({{"event", "hello"}, {"protocol", 1}, {"version", programVersion()}, {"verb", verb}});
}

ProgressLine::~ProgressLine()
{
    clear();
    if (m_file) std::fclose(m_file);
}

void ProgressLine::tell(std::string_view what, std::int64_t done, std::int64_t total, std::string_view detail)
{
    if (m_mode == Mode::Silent) return;
    const auto now = std::chrono::steady_clock::now();
    {
        const std::lock_guard lock(m_mutex);
        if (done < total && now - m_last < 50ms) return;
        m_last = now;
    }
    if (m_mode == Mode::JsonLines) {
        event({{"event", "progress"}, {"what", what}, {"done", done}, {"total", total}});
        return;
    }
    const std::lock_guard lock(m_mutex);
    constexpr int width = 24;
    const double share = total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
    const int full = static_cast<int>(share * width);
    std::string bar;
    for (int i = 0; i < width; ++i) bar += i < full ? "█" : "░";
    const double seconds = std::chrono::duration<double>(now - m_begin).count();
    std::string rest;
    if (done > 0 && done < total && seconds > 2) rest = fmt::format("  {:.0f} s left", seconds * (1 - share) / share);
    sayOnStandardError(fmt::format("\r\033[K{}{}{} {}/{} {}{}{}", m_colour ? "\033[36m" : "", bar,
                                   m_colour ? "\033[0m" : "", done, total, shownText(what),
                                   detail.empty() ? "" : fmt::format("  {}", shownText(detail)), rest));
    m_drawn = true;
}

void ProgressLine::event(const Json& object)
{
    if (m_mode == Mode::JsonLines) eventLine(object.line());
}

void ProgressLine::eventLine(const std::string& object)
{
    if (m_mode != Mode::JsonLines) return;
    const std::string line = object + "\n";
    const std::lock_guard lock(m_mutex);
    std::FILE* const to = m_file ? m_file : stderr;
    std::fwrite(line.data(), 1, line.size(), to);
    std::fflush(to);
}

void ProgressLine::clear()
{
    const std::lock_guard lock(m_mutex);
    if (!m_drawn) return;
    sayOnStandardError("\r\033[K");
    m_drawn = false;
}

} // namespace stagewright
