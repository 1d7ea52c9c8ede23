#include "app/listen/otlp_server.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <protozero/pbf_builder.hpp>

#include "schedules/base/text.h"
#include "traces/export/chrome_json.h"
#include "traces/foreign/byte_source.h"
#include "traces/import/otlp/otlp_fields.h"

namespace stagewright {

namespace {

using Clock = std::chrono::steady_clock;

struct Upload {
    bool json = true, gzip = false;
    int refused = 0; // the code to answer with; 0: none
    std::string why;
    std::string body;
    std::size_t seen = 0; // bytes, kept or not
};

struct Connected {
    int socket = -1;
    Clock::time_point since; // it opened, or its last request was answered
};

std::string lastOf(std::string_view type) // "application/json; charset=utf-8": without what is behind
{
    return lowered(trimmed(type.substr(0, type.find(';'))));
}

// As the request was encoded.
std::string successText(bool json, const OtlpAnswer& answer)
{
    if (answer.rejected == 0 && answer.message.empty()) return json ? "{}" : "";
    if (json)
        return fmt::format(R"({{"partialSuccess":{{"rejectedSpans":"{}","errorMessage":{}}}}})", answer.rejected,
                           jsonText(answer.message));
    std::string bytes;
    protozero::pbf_builder<otlp::Response> response(bytes);
    protozero::pbf_builder<otlp::PartialSuccess> part(response, otlp::Response::partialSuccess);
    part.add_int64(otlp::PartialSuccess::rejectedSpans, answer.rejected);
    part.add_string(otlp::PartialSuccess::message, answer.message);
    return bytes;
}

// google.rpc.Status
std::string errorText(bool json, int status, const std::string& message)
{
    constexpr int invalidArgument = 3, exhausted = 8, unimplemented = 12, unavailable = 14;
    const int code = status == 503                                     ? unavailable
                     : status == 413 || status == 429                  ? exhausted
                     : status == 404 || status == 405 || status == 415 ? unimplemented
                                                                       : invalidArgument;
    if (json) return fmt::format(R"({{"code":{},"message":{}}})", code, jsonText(message));
    std::string bytes;
    protozero::pbf_builder<otlp::Status> text(bytes);
    text.add_int32(otlp::Status::code, code);
    text.add_string(otlp::Status::message, message);
    return bytes;
}

class Server final : public OtlpServer {
public:
    Server(Take take, const Limits& limits) : m_take(std::move(take)), m_limits(limits) {}
    ~Server() override
    {
        if (m_daemon != nullptr) MHD_stop_daemon(m_daemon);
    }

    Result<void> listen(const std::string& address, int port)
    {
        sockaddr_in four{};
        sockaddr_in6 six{};
        const bool isSix = address.find(':') != std::string::npos;
        four.sin_family = AF_INET;
        four.sin_port = htons(static_cast<std::uint16_t>(port));
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(static_cast<std::uint16_t>(port));
        if (inet_pton(isSix ? AF_INET6 : AF_INET, address.c_str(),
                      isSix ? static_cast<void*>(&six.sin6_addr) : &four.sin_addr) != 1)
            return fail(ErrorCode::Usage, fmt::format("'{}' is not an address", address),
                        "write 127.0.0.1:4318, or 0.0.0.0:4318 for clients on other computers");
        const unsigned flags =
            unsigned{MHD_USE_INTERNAL_POLLING_THREAD} | unsigned{MHD_USE_AUTO} | (isSix ? unsigned{MHD_USE_IPv6} : 0U);
        m_daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &Server::onRequest, this, MHD_OPTION_SOCK_ADDR,
                                    isSix ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four),
                                    MHD_OPTION_CONNECTION_LIMIT, m_limits.connections, MHD_OPTION_CONNECTION_TIMEOUT,
                                    static_cast<unsigned>(m_limits.request.count()), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                    std::size_t{64} << 10, MHD_OPTION_NOTIFY_CONNECTION, &Server::onConnection, this,
                                    MHD_OPTION_NOTIFY_COMPLETED, &Server::onCompleted, this, MHD_OPTION_END);
        if (m_daemon == nullptr)
            return fail(ErrorCode::Unavailable,
                        fmt::format("can't listen on {}:{}: {}", address, port, std::strerror(errno)),
                        "choose another port, or 0 for one that is free");
        const MHD_DaemonInfo* bound = MHD_get_daemon_info(m_daemon, MHD_DAEMON_INFO_BIND_PORT);
        m_port = bound != nullptr && bound->port != 0 ? bound->port : port;
        return {};
    }

    int port() const override { return m_port; }

    void closeSlow() override
    {
        const std::lock_guard lock(m_mutex);
        for (const auto& [connection, one] : m_connected)
            if (Clock::now() - one.since > m_limits.request) shutdown(one.socket, SHUT_RDWR);
    }

private:
    static void onConnection(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code)
    {
        auto& server = *static_cast<Server*>(self);
        const std::lock_guard lock(server.m_mutex);
        if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
            server.m_connected.erase(connection);
            return;
        }
        const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (info != nullptr) server.m_connected[connection] = {info->connect_fd, Clock::now()};
    }

    static void onCompleted(void* self, MHD_Connection* connection, void** state, MHD_RequestTerminationCode)
    {
        auto& server = *static_cast<Server*>(self);
        if (auto* upload = static_cast<Upload*>(*state)) {
            server.m_held -= upload->body.size();
            delete upload;
            *state = nullptr;
        }
        const std::lock_guard lock(server.m_mutex);
        if (const auto found = server.m_connected.find(connection); found != server.m_connected.end())
            found->second.since = Clock::now();
    }

    static MHD_Result onRequest(void* self, MHD_Connection* connection, const char* path, const char* method,
                                const char*, const char* bytes, std::size_t* size, void** state)
    {
        auto& server = *static_cast<Server*>(self);
        try {
            if (*state == nullptr) {
                auto upload = std::make_unique<Upload>();
                server.look(connection, path, method, *upload);
                *state = upload.release();
                return MHD_YES;
            }
            auto& upload = *static_cast<Upload*>(*state);
            if (*size > 0) {
                const bool goesOn = server.add(upload, {bytes, *size});
                *size = 0;
                return goesOn ? MHD_YES : MHD_NO;
            }
            return server.answer(connection, upload);
        } catch (const std::bad_alloc&) {
            return MHD_NO; // closes the connection
        }
    }

    // By the headers. What is refused is read to its end, so that the client gets the answer.
    void look(MHD_Connection* connection, std::string_view path, std::string_view method, Upload& upload)
    {
        const auto header = [connection](const char* name) {
            const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
            return std::string(value == nullptr ? "" : value);
        };
        const auto refuse = [&upload](int code, std::string why) {
            if (upload.refused != 0) return;
            upload.refused = code;
            upload.why = std::move(why);
        };
        const std::string type = lastOf(header("Content-Type")), packing = lowered(header("Content-Encoding"));
        upload.json = type != "application/x-protobuf";
        upload.gzip = packing == "gzip";
        if (path != "/v1/traces")
            refuse(MHD_HTTP_NOT_FOUND, fmt::format("there is no {}: spans go to /v1/traces", path));
        if (method != "POST") refuse(MHD_HTTP_METHOD_NOT_ALLOWED, "spans are sent by POST");
        if (type != "application/json" && type != "application/x-protobuf")
            refuse(MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json or application/x-protobuf");
        if (!packing.empty() && packing != "gzip" && packing != "identity")
            refuse(MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "Content-Encoding must be gzip or none");
        if (const auto length = wholeOf<std::uint64_t>(header("Content-Length")); length && *length > m_limits.body)
            refuse(MHD_HTTP_CONTENT_TOO_LARGE, tooLarge());
        if (!mayCome()) refuse(MHD_HTTP_TOO_MANY_REQUESTS, "too many requests a second");
    }

    // At most so many a second.
    bool mayCome()
    {
        const auto second = std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count();
        if (second != m_second) m_second = second, m_inSecond = 0;
        return ++m_inSecond <= m_limits.requestsPerSecond;
    }

    std::string tooLarge() const
    {
        return fmt::format("a request may have {} MiB, {} MiB when unpacked: send smaller batches", m_limits.body >> 20,
                           m_limits.unpacked >> 20);
    }

    bool add(Upload& upload, std::string_view bytes)
    {
        upload.seen += bytes.size();
        if (upload.seen > 4 * m_limits.body) return false;
        if (upload.refused == 0 && upload.seen > m_limits.body) {
            upload.refused = MHD_HTTP_CONTENT_TOO_LARGE;
            upload.why = tooLarge();
        } else if (upload.refused == 0 && m_held + bytes.size() > m_limits.held) {
            upload.refused = MHD_HTTP_SERVICE_UNAVAILABLE;
            upload.why = "other requests take all memory";
        }
        m_held -= upload.body.size();
        if (upload.refused == 0)
            upload.body.append(bytes);
        else
            std::string().swap(upload.body);
        m_held += upload.body.size();
        return true;
    }

    MHD_Result answer(MHD_Connection* connection, Upload& upload)
    {
        const auto refuse = [&upload](int code, std::string why) {
            upload.refused = code;
            upload.why = std::move(why);
        };
        OtlpAnswer taken;
        std::optional<std::string> unpacked;
        if (upload.refused == 0 && upload.gzip) {
            auto plain = unpackedDeflate(upload.body, m_limits.unpacked);
            if (plain)
                unpacked = std::move(*plain);
            else if (plain.error().code == ErrorCode::Failed)
                refuse(MHD_HTTP_CONTENT_TOO_LARGE, tooLarge());
            else
                refuse(MHD_HTTP_BAD_REQUEST, "the gzip data is damaged");
        }
        if (upload.refused == 0) {
            taken = m_take(upload.json, unpacked ? *unpacked : upload.body);
            if (taken.is == OtlpAnswer::Is::Damaged) refuse(MHD_HTTP_BAD_REQUEST, taken.message);
            if (taken.is == OtlpAnswer::Is::Busy) refuse(MHD_HTTP_SERVICE_UNAVAILABLE, taken.message);
        }
        std::string text =
            upload.refused == 0 ? successText(upload.json, taken) : errorText(upload.json, upload.refused, upload.why);
        MHD_Response* response = MHD_create_response_from_buffer(text.size(), text.data(), MHD_RESPMEM_MUST_COPY);
        if (response == nullptr) return MHD_NO;
        MHD_add_response_header(response, "Content-Type", upload.json ? "application/json" : "application/x-protobuf");
        if (upload.refused == MHD_HTTP_TOO_MANY_REQUESTS || upload.refused == MHD_HTTP_SERVICE_UNAVAILABLE)
            MHD_add_response_header(response, "Retry-After", "1");
        if (upload.refused == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "POST");
        ++(upload.refused == 0 ? requests : refused);
        const MHD_Result result = MHD_queue_response(
            connection, static_cast<unsigned>(upload.refused == 0 ? MHD_HTTP_OK : upload.refused), response);
        MHD_destroy_response(response);
        return result;
    }

    Take m_take;
    Limits m_limits;
    MHD_Daemon* m_daemon = nullptr;
    int m_port = 0;
    std::mutex m_mutex; // of m_connected
    std::map<MHD_Connection*, Connected> m_connected;
    std::size_t m_held = 0; // these of the server's thread
    std::int64_t m_second = 0;
    int m_inSecond = 0;
};

} // namespace

Result<std::unique_ptr<OtlpServer>> OtlpServer::start(const std::string& address, int port, Take take,
                                                      const Limits& limits)
{
    auto server = std::make_unique<Server>(std::move(take), limits);
    STAGEWRIGHT_CHECK(server->listen(address, port));
    return std::unique_ptr<OtlpServer>(std::move(server));
}

} // namespace stagewright
