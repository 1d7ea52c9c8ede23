#include "app/cli/verbs/remote_call.h"

#include <cstdio>

#include <fmt/core.h>

#include "app/cli/session.h"
#include "schedules/base/shown_text.h"

namespace stagewright {

namespace {

// Line by line, as characters may come in two parts.
struct Lines {
    std::FILE* to;
    std::string rest;

    void add(const std::string& bytes)
    {
        rest += bytes;
        flush(rest.rfind('\n') + 1);
    }
    void flush(std::size_t bytes)
    {
        const std::string text = shownText(std::string_view(rest).substr(0, bytes));
        std::fwrite(text.data(), 1, text.size(), to);
        rest.erase(0, bytes);
    }
};

} // namespace

Result<int> callOnHost(const std::string& verb, const std::string& host, const std::vector<TypedOption>& typed,
                       Session& session)
{
    STAGEWRIGHT_TRY(auto call, travelCall(verb, typed));
    if (session.json) call.arguments.emplace_back("--json");
    if (session.progressMode == "jsonl") call.arguments.emplace_back("--progress=jsonl");
    RemoteCall remote{host, call.arguments, call.files};
    RemoteOutput output;
    // text of another computer: control characters would steer this terminal
    Lines out{stdout, {}};
    Lines err{stderr, {}};
    output.out = [&out](const std::string& bytes) { out.add(bytes); };
    output.err = [&err](const std::string& bytes) { err.add(bytes); };
    auto code = callThere(remote, output, session.stop());
    out.flush(out.rest.size());
    err.flush(err.rest.size());
    return code;
}

} // namespace stagewright
