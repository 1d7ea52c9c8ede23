#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/listen/otlp_server.h"
#include "app/listen/received_spans.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/text/link_text.h"

namespace stagewright {

namespace {

using namespace std::chrono_literals;
using ListenClock = std::chrono::steady_clock;

struct ListenChoice {
    std::string otlp = "127.0.0.1:4318";
    std::string output, rules, largest = "1GiB";
    double seconds = 0, idle = 0;
};

struct Endpoint {
    std::string address = "127.0.0.1";
    int port = 0;
};

// "4318", "127.0.0.1:4318", "localhost:0", "[::1]:4318"
Result<Endpoint> endpointOf(const std::string& text)
{
    Endpoint out;
    const std::size_t colon = text.rfind(':');
    const auto port = wholeOf<int>(std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1));
    if (!port || *port < 0 || *port > 65'535)
        return fail(ErrorCode::Usage, fmt::format("--otlp {}: it has no port from 0 to 65535", text),
                    "write 127.0.0.1:4318");
    out.port = *port;
    if (colon == std::string::npos) return out;
    out.address = text.substr(0, colon);
    if (out.address.size() > 2 && out.address.front() == '[' && out.address.back() == ']')
        out.address = out.address.substr(1, out.address.size() - 2);
    if (out.address == "localhost") out.address = "127.0.0.1";
    return out;
}

bool isLoopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

void answerRuns(const std::vector<ImportedRun>& runs, const ListenChoice& options, const OtlpServer& server,
                const ReceivedSpans& received, Session& session)
{
    std::int64_t spans = 0; // each once
    for (const ImportedRun& one : runs) spans += one.events;
    if (session.json) {
        Json listed = Json::array();
        for (const ImportedRun& one : runs)
            listed.push_back({{"id", one.run.info.id},
                              {"name", one.run.info.name},
                              {"ranks", one.run.info.ranks},
                              {"steps", one.run.info.steps},
                              {"ops", one.ops},
                              {"notes", one.notes}});
        session.answer({{"file", options.output},
                        {"requests", server.requests.load()},
                        {"refused_requests", server.refused.load()},
                        {"spans", spans},
                        {"rejected_spans", received.rejected()},
                        {"runs", std::move(listed)}});
    }
    for (const ImportedRun& one : runs) {
        session.out(fmt::format("#{} {}: {}, {}, {}\n", one.run.info.id, one.run.info.name,
                                counted(one.run.info.ranks, "rank"), counted(one.run.info.steps, "step"),
                                counted(one.ops, "op")));
        for (const std::string& note : one.notes) session.out(fmt::format("{}: {}\n", one.run.info.name, note));
    }
    session.note(fmt::format("stored {} in {}", counted(spans, "span"), options.output));
}

Result<int> runListen(const ListenChoice& options, Session& session)
{
    STAGEWRIGHT_TRY(const Endpoint at, endpointOf(options.otlp));
    const auto largest = parseBytes(options.largest);
    if (!largest) return tl::unexpected(Error(largest.error()).with("--max-size"));
    ImportOptions import;
    if (!options.rules.empty()) {
        STAGEWRIGHT_TRY(auto text, readFile(options.rules));
        auto rules = LabelRules::parse(text);
        if (!rules) return tl::unexpected(std::move(rules.error()).with("file " + options.rules));
        import.rules = std::move(*rules);
    }
    const std::stop_token stop = session.stop();
    STAGEWRIGHT_TRY(const auto received, ReceivedSpans::open(options.output, static_cast<std::uint64_t>(*largest)));
    STAGEWRIGHT_TRY(const auto server, OtlpServer::start(at.address, at.port, [&](bool json, std::string_view body) {
                        return received->take(json, body);
                    }));
    const std::string shown = at.address.find(':') == std::string::npos ? at.address : "[" + at.address + "]";
    session.progress().event({{"event", "listening"}, {"address", at.address}, {"port", server->port()}});
    session.note(fmt::format("listening on http://{}:{}/v1/traces; Ctrl+C ends it", shown, server->port()));
    if (!isLoopback(at.address))
        session.warn(fmt::format("{} is reached from other computers, and whoever sends spans is believed", shown));
    if (received->spans() > 0)
        session.note(
            fmt::format("goes on behind {} of a listener that was killed", counted(received->spans(), "span")));

    const auto begin = ListenClock::now();
    auto lastSpan = begin, lastLook = begin, nextWrite = begin + 2s;
    std::int64_t seen = received->spans(), written = 0;
    const auto elapsed = [](ListenClock::time_point from) {
        return std::chrono::duration<double>(ListenClock::now() - from).count();
    };
    while (!stop.stop_requested() && (options.seconds <= 0 || elapsed(begin) < options.seconds) &&
           (options.idle <= 0 || elapsed(lastSpan) < options.idle)) {
        std::this_thread::sleep_for(50ms);
        const auto now = ListenClock::now();
        if (const std::int64_t spans = received->spans(); spans != seen) {
            seen = spans;
            lastSpan = now;
        }
        if (now - lastLook >= 1s) {
            lastLook = now;
            server->closeSlow();
            session.progress().tell("spans", seen, seen, fmt::format("{} requests", server->requests.load()));
        }
        if (seen == written || now < nextWrite) continue;
        // So rarely that it takes 10 % of the time, however long the run.
        Progress quiet;
        quiet.stop = stop;
        if (const auto runs = received->write(import, false, quiet);
            !runs && runs.error().code != ErrorCode::Unreadable && runs.error().code != ErrorCode::Cancelled)
            session.warn(runs.error().message);
        written = seen;
        nextWrite = ListenClock::now() + std::max<ListenClock::duration>(2s, 9 * (ListenClock::now() - now));
    }
    session.progress().clear();
    Progress last = session.reporter("spans");
    last.stop = {}; // what was received is written, whatever ended it
    auto runs = received->write(import, true, last);
    if (!runs) return tl::unexpected(std::move(runs.error()));
    answerRuns(*runs, options, *server, *received, session);
    return ExitDone;
}

} // namespace

Command command_listen()
{
    return {
        "listen", "Receive the spans of a running job by OpenTelemetry's protocol and make a run of them",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<ListenChoice>();
            verb.value("--otlp", &options->otlp,
                       "Address and port of the server; port 0: one that is free, which is printed [127.0.0.1:4318]")
                .form("HOST:PORT");
            verb.value("-o,--output", &options->output, "Run file to write, a new one").form("FILE").required();
            verb.value("--for", &options->seconds, "End after so many seconds [at Ctrl+C]").form("S");
            verb.value("--idle", &options->idle, "End once no span came for so many seconds [at Ctrl+C]").form("S");
            verb.value("--max-size", &options->largest, "Spans that are kept, in bytes; later ones are rejected [1GiB]")
                .form("SIZE");
            verb.value("--rules", &options->rules,
                       "File that maps names of spans to ops, ahead of the known names (docs/formats.md)")
                .form("FILE");
            verb.notes(
                "Takes POST /v1/traces, JSON or protobuf, plain or gzip: what exporters of OpenTelemetry send by "
                "HTTP.\n"
                "The run file is written again while spans come, about every two seconds. A killed listener leaves\n"
                "FILE.received.otlp and FILE.received.jsonl beside it, with all that it had accepted; the same command "
                "goes on.\n"
                "Example: stagewright listen --otlp 127.0.0.1:4318 -o job.stagewright --idle 60");
            return [options](Session& session) { return runListen(*options, session); };
        },
        true, true};
}

} // namespace stagewright
