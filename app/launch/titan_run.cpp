#include "app/launch/titan_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>
#include <utility>

#include <poll.h>

#include <fmt/format.h>

#include "app/launch/child_process.h"
#include "schedules/base/folder.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds slowStart{600}; // compiling and loading a model
constexpr std::size_t lastTitanLines = 8;
constexpr std::size_t longestTitanLine = 1 << 16;
constexpr int mostSteps = 100'000'000;

std::string withoutColours(const std::string& line)
{
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '\x1b') {
            text += line[i];
            continue;
        }
        while (i < line.size() && line[i] != 'm') ++i;
    }
    return text;
}

// The number that follows a word, blanks between.
std::optional<double> numberAfter(const std::string& text, std::string_view word)
{
    const std::size_t at = text.find(word);
    if (at == std::string::npos) return std::nullopt;
    const char* begin = text.c_str() + at + word.size();
    char* end = nullptr;
    const double value = std::strtod(begin, &end);
    if (end == begin) return std::nullopt;
    return value;
}

// outputs/profile_traces/iteration_20: the highest number.
std::string newestTraces(const std::string& folder)
{
    std::error_code error;
    std::string newest;
    int most = -1;
    const std::string traces = folder + "/outputs/profile_traces";
    for (const std::string& name : namesIn(traces)) {
        constexpr std::string_view prefix = "iteration_";
        if (!name.starts_with(prefix)) continue;
        const int number = wholeOf<int>(std::string_view(name).substr(prefix.size())).value_or(-1);
        if (number > most && !fs::is_empty(fs::path(traces) / name, error)) {
            most = number;
            newest = fs::path(traces) / name;
        }
    }
    return newest;
}

class TitanWatch {
public:
    TitanWatch(const TitanRun& run, ChildProcess child)
        : m_run(run), m_child(std::move(child)), m_log(run.folder + "/titan.log", std::ios::binary | std::ios::trunc)
    {
    }

    TitanRunEnd watch(const std::stop_token& stop)
    {
        std::optional<ChildEnd> end;
        while (!(end = m_child.poll()) && !m_out.stopped) {
            listen(100);
            const Seconds still = Clock::now() - m_heard;
            const Seconds patience(m_run.timeoutSeconds);
            if (stop.stop_requested())
                m_out.stopped = Error{ErrorCode::Cancelled, "interrupted", {}};
            else if (still > (m_out.steps == 0 ? std::max(patience, slowStart) : patience))
                m_out.stopped = failure(fmt::format("TorchTitan said nothing for {:.0f} s", still.count()));
        }
        if (!end) m_child.signalGroup(SIGTERM);
        for (const auto until = Clock::now() + std::chrono::seconds(2); !m_child.atEnd() && Clock::now() < until;)
            listen(50);
        if (!end) m_child.signalGroup(SIGKILL);
        if (!m_begun.empty()) take(m_begun);
        m_out.traces = newestTraces(m_run.folder);
        if (end && !end->good()) m_out.stopped = failure("TorchTitan " + toText(*end));
        if (end && end->good() && m_out.traces.empty()) m_out.stopped = failure("TorchTitan wrote no traces");
        return std::move(m_out);
    }

private:
    void listen(int milliseconds)
    {
        if (m_child.atEnd()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            return;
        }
        pollfd waiting{m_child.output(), POLLIN, 0};
        ::poll(&waiting, 1, milliseconds);
        const std::string text = m_child.read();
        if (text.empty()) return;
        m_heard = Clock::now();
        m_log << text << std::flush;
        m_begun += text;
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = m_begun.find('\n', begin)) != std::string::npos; begin = end + 1)
            take(m_begun.substr(begin, end - begin));
        m_begun.erase(0, begin);
        if (m_begun.size() > longestTitanLine) take(std::exchange(m_begun, {}));
    }

    void take(const std::string& line)
    {
        const std::string text = withoutColours(line);
        if (text.find_first_not_of(" \t\r") != std::string::npos) m_last.push_back(text.substr(0, 300));
        if (m_last.size() > lastTitanLines) m_last.pop_front();
        const auto step = parseTitanLine(text);
        if (!step) return;
        const auto count = static_cast<std::size_t>(step->step);
        if (m_out.losses.size() < count) m_out.losses.resize(count, std::numeric_limits<double>::quiet_NaN());
        if (step->loss >= 0) m_out.losses[count - 1] = step->loss; // ranks without the last stage say −1
        if (step->step <= m_out.steps) return;
        m_out.steps = step->step;
        if (m_run.onStep) m_run.onStep(step->step - 1, m_out.losses[count - 1]);
    }

    Error failure(const std::string& what) const
    {
        std::string lines;
        for (const std::string& line : m_last) lines += "\n    " + line;
        return {ErrorCode::Failed, what,
                fmt::format("its log is {}/titan.log{}{}", m_run.folder, lines.empty() ? "" : ", which ends:", lines)};
    }

    const TitanRun& m_run;
    ChildProcess m_child;
    std::ofstream m_log;
    std::string m_begun; // the line that is not complete yet
    std::deque<std::string> m_last;
    TitanRunEnd m_out;
    Clock::time_point m_heard = Clock::now();
};

} // namespace

std::optional<TitanStep> parseTitanLine(const std::string& line)
{
    const std::string text = withoutColours(line);
    const auto step = numberAfter(text, "step:");
    const auto loss = numberAfter(text, "loss:");
    if (!step || !loss || !(*step >= 1) || *step > mostSteps || *step != std::floor(*step) || !std::isfinite(*loss))
        return std::nullopt;
    return TitanStep{static_cast<int>(*step), *loss};
}

Result<TitanRunEnd> runTitanJob(const TitanRun& run, const std::stop_token& stop)
{
    auto child =
        ChildProcess::start({{"/bin/sh", run.folder + "/run.sh", run.config},
                             {{"PYTHON", run.python}, {"STEPS", std::to_string(run.steps)}, {"PYTHONUNBUFFERED", "1"}},
                             run.folder});
    if (!child) return tl::unexpected(std::move(child.error()));
    return TitanWatch(run, std::move(*child)).watch(stop);
}

} // namespace stagewright
