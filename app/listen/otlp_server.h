// OtlpServer: OpenTelemetry's requests by HTTP: POST /v1/traces, JSON or protobuf, plain or gzip. Answers are those of
// the OTLP specification: 200 with the spans that were not accepted, 400 for what is damaged, 404, 405, 413, 415, and
// 429 or 503 with Retry-After where a client should send it again. Everything is bounded: see Limits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "schedules/base/result.h"

namespace stagewright {

struct OtlpAnswer {
    enum class Is {
        Taken,
        Damaged, // 400: sending it again would not help
        Busy,    // 503: it would
    };
    Is is = Is::Taken;
    std::int64_t rejected = 0; // spans of a taken request that were not accepted
    std::string message;       // why
};

class OtlpServer {
public:
    struct Limits {
        std::size_t body = std::size_t{16} << 20;     // as sent; larger: 413
        std::size_t unpacked = std::size_t{64} << 20; // the same, of gzip
        std::size_t held = std::size_t{128} << 20;    // of all bodies that are being sent; more: 503
        unsigned connections = 64;                    // further ones wait
        int requestsPerSecond = 500;                  // more: 429
        std::chrono::seconds request{15};             // a connection that has not sent one in that time is closed
    };
    // `take` gets each body as it was before its compression, one at a time, on the server's thread.
    using Take = std::function<OtlpAnswer(bool json, std::string_view body)>;

    // address: "127.0.0.1", "::1" …; port 0: one that is free. Unavailable: it can't be bound.
    static Result<std::unique_ptr<OtlpServer>> start(const std::string& address, int port, Take take)
    {
        return start(address, port, std::move(take), Limits());
    }
    static Result<std::unique_ptr<OtlpServer>> start(const std::string& address, int port, Take take,
                                                     const Limits& limits);
    virtual ~OtlpServer() = default; // requests that are being answered are; no further one
    OtlpServer(const OtlpServer&) = delete;
    OtlpServer& operator=(const OtlpServer&) = delete;

    virtual int port() const = 0;
    virtual void closeSlow() = 0; // to be called about every second, by any thread

    std::atomic<std::int64_t> requests{0}; // answered with 200
    std::atomic<std::int64_t> refused{0};  // with anything else

protected:
    OtlpServer() = default;
};

} // namespace stagewright
