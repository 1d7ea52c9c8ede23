#include "app/launch/hosts/host_list.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/launch/hosts/private_file.h"
#include "app/launch/shell_words.h"
#include "schedules/base/change_lock.h"
#include "schedules/base/foreign_json.h"
#include "schedules/base/small_file.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

using Value = nlohmann::ordered_json;

constexpr std::size_t longestName = 64;
constexpr std::size_t longestText = 4096;

bool isName(std::string_view name)
{
    const auto alphanumeric = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    return !name.empty() && name.size() <= longestName && alphanumeric(name.front()) &&
           std::all_of(name.begin(), name.end(),
                       [&](char c) { return alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

Result<Host> hostOf(const Value& value)
{
    Host host;
    try {
        host.name = value.at("name").get<std::string>();
        host.target = value.at("target").get<std::string>();
        host.folder = value.value("folder", host.folder);
        host.scratch = value.value("scratch", host.scratch);
        host.setup = value.value("setup", host.setup);
    } catch (const nlohmann::json::exception& e) {
        return fail(ErrorCode::Unreadable, fmt::format("a host is damaged: {}", e.what()));
    }
    STAGEWRIGHT_CHECK(checkHost(host));
    return host;
}

// The list as it is now, changed: hosts that another program adds meanwhile stay.
Result<void> changed(const std::function<void(std::vector<Host>&)>& change)
{
    if (auto made = makePrivateFolder(std::filesystem::path(hostsFile()).parent_path().string()); !made) return made;
    STAGEWRIGHT_TRY(const auto lock, ChangeLock::take(hostsFile()));
    STAGEWRIGHT_TRY(auto known, readHosts());
    std::vector<Host>& hosts = known;
    change(hosts);
    std::sort(hosts.begin(), hosts.end(), [](const Host& a, const Host& b) { return a.name < b.name; });
    Value list = Value::array();
    for (const Host& host : hosts)
        list.push_back({{"name", host.name},
                        {"target", host.target},
                        {"folder", host.folder},
                        {"scratch", host.scratch},
                        {"setup", host.setup}});
    const Value all{{"hosts", std::move(list)}};
    return writePrivateFile(hostsFile(), all.dump(2, ' ', false, Value::error_handler_t::replace) + "\n");
}

} // namespace

std::string hostsFile() { return userFolder("XDG_CONFIG_HOME", ".config") + "/stagewright/hosts.json"; }

std::string stateFolder() { return userFolder("XDG_STATE_HOME", ".local/state") + "/stagewright"; }

Result<void> checkHost(const Host& host)
{
    if (!isName(host.name))
        return fail(ErrorCode::Usage,
                    fmt::format("'{}' can't be the name of a host", plainText(host.name, longestName)),
                    "use letters, digits, '.', '_' and '-', the first a letter or digit");
    if (host.target.empty())
        return fail(ErrorCode::Usage, fmt::format("host {}: its target is empty", host.name),
                    "give what you would type after ssh, such as user@node1");
    if (host.target.front() == '-')
        return fail(ErrorCode::Usage,
                    fmt::format("host {}: target '{}' starts with '-', so ssh would take it as an option", host.name,
                                plainText(host.target, longestName)),
                    "put options of ssh in ~/.ssh/config and name the entry");
    if (host.target.find_first_of(" \t") != std::string::npos)
        return fail(
            ErrorCode::Usage,
            fmt::format("host {}: target '{}' has a space in it", host.name, plainText(host.target, longestName)),
            "put ports and other options in ~/.ssh/config and name the entry");
    std::vector<std::string> texts{host.target, host.folder, host.scratch};
    texts.insert(texts.end(), host.setup.begin(), host.setup.end());
    for (const std::string& text : texts) {
        if (const std::string why = whyNotSent(text); !why.empty())
            return fail(ErrorCode::Usage,
                        fmt::format("host {}: '{}': {}", host.name, plainText(text, longestName), why), "leave it out");
        if (text.size() > longestText)
            return fail(
                ErrorCode::Usage,
                fmt::format("host {}: a text of {} bytes; at most {} are kept", host.name, text.size(), longestText),
                "put long lines in a script there");
    }
    for (const std::string* folder : {&host.folder, &host.scratch}) {
        if (folder->empty() && folder == &host.scratch) continue;
        if (folder->starts_with('/') || folder->starts_with("~/")) continue;
        return fail(ErrorCode::Usage, fmt::format("host {}: folder '{}' is relative", host.name, *folder),
                    "start it with / or ~/");
    }
    return {};
}

Result<std::vector<Host>> readHosts()
{
    STAGEWRIGHT_TRY(auto text, readSmallFile(hostsFile()));
    std::vector<Host> hosts;
    if (text.empty()) return hosts;
    const auto refuse = [](std::string message) {
        return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", hostsFile(), message),
                    "correct it, or move it away and add the hosts again");
    };
    const Value all = readForeignJson<Value>(text);
    if (all.is_discarded()) return refuse("it is not JSON, or nested too deep");
    if (!all.is_object() || !all.contains("hosts") || !all["hosts"].is_array())
        return refuse("it has no list of hosts");
    for (const Value& value : all["hosts"]) {
        auto host = hostOf(value);
        if (!host) return refuse(host.error().message);
        const bool twice =
            std::any_of(hosts.begin(), hosts.end(), [&](const Host& other) { return other.name == host->name; });
        if (twice) return refuse(fmt::format("host {} is in it twice", host->name));
        hosts.push_back(std::move(*host));
    }
    std::sort(hosts.begin(), hosts.end(), [](const Host& a, const Host& b) { return a.name < b.name; });
    return hosts;
}

Result<Host> findHost(std::string_view name)
{
    STAGEWRIGHT_TRY(auto hosts, readHosts());
    std::vector<std::string> names;
    for (Host& host : hosts) {
        if (host.name == name) return std::move(host);
        names.push_back(host.name);
    }
    return fail(ErrorCode::Usage, fmt::format("there is no host '{}'", plainText(name, longestName)),
                names.empty()
                    ? "add it: stagewright hosts add NAME SSH-TARGET"
                    : fmt::format("hosts are {}; add one with: stagewright hosts add NAME SSH-TARGET", listed(names)));
}

Result<void> keepHost(const Host& host)
{
    if (auto good = checkHost(host); !good) return good;
    return changed([&](std::vector<Host>& hosts) {
        std::erase_if(hosts, [&](const Host& other) { return other.name == host.name; });
        hosts.push_back(host);
    });
}

Result<void> removeHost(std::string_view name)
{
    STAGEWRIGHT_CHECK(findHost(name));
    return changed(
        [&](std::vector<Host>& hosts) { std::erase_if(hosts, [&](const Host& host) { return host.name == name; }); });
}

} // namespace stagewright
