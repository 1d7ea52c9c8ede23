#include "app/cli/verbs/remote_call.h"

#include <cstdio>

#include <fmt/core.h>

#include "app/cli/session.h"
#include "app/launch/shell_words.h"

namespace stagewright {

Result<int> callOnHost(const std::string& verb, const PlaceOptions& place, Session& session)
{
    auto call = travelCall(verb, place);
    if (!call) return tl::unexpected(std::move(call.error()));
    if (session.json) call->arguments.emplace_back("--json");
    if (session.progressMode == "jsonl") call->arguments.emplace_back("--progress=jsonl");
    RemoteCall remote{place.host, call->arguments, call->files};
    RemoteOutput output;
    // text of another computer: control characters would steer this terminal
    output.out = [](const std::string& bytes) {
        const std::string text = plainText(bytes, bytes.size());
        std::fwrite(text.data(), 1, text.size(), stdout);
    };
    output.err = [](const std::string& bytes) {
        const std::string text = plainText(bytes, bytes.size());
        std::fwrite(text.data(), 1, text.size(), stderr);
    };
    return callThere(remote, output, session.stop());
}

} // namespace stagewright
