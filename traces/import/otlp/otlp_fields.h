// Numbers of the fields of OTLP's messages (opentelemetry/proto/trace/v1/trace.proto, common.proto, resource.proto,
// trace_service.proto) that are read or written here.
#pragma once

#include <protozero/types.hpp>

namespace stagewright::otlp {

enum class Request : protozero::pbf_tag_type {
    resourceSpans = 1,
};
enum class ResourceSpans : protozero::pbf_tag_type {
    resource = 1,
    scopeSpans = 2,
    schemaUrl = 3,
    librarySpans = 1000, // of versions before 0.16
};
enum class Resource : protozero::pbf_tag_type {
    attribute = 1,
};
enum class ScopeSpans : protozero::pbf_tag_type {
    scope = 1,
    span = 2,
    schemaUrl = 3,
};
enum class Span : protozero::pbf_tag_type {
    traceId = 1,
    spanId = 2,
    parent = 4,
    name = 5,
    kind = 6,
    start = 7, // fixed64
    end = 8,   // fixed64
    attribute = 9,
    event = 11,
    link = 13,
};
enum class KeyValue : protozero::pbf_tag_type {
    key = 1,
    value = 2,
};
enum class AnyValue : protozero::pbf_tag_type {
    text = 1,
    boolean = 2,
    whole = 3,
    number = 4,
};
enum class Response : protozero::pbf_tag_type {
    partialSuccess = 1,
};
enum class PartialSuccess : protozero::pbf_tag_type {
    rejectedSpans = 1,
    message = 2,
};
enum class Status : protozero::pbf_tag_type { // google.rpc.Status, of an error
    code = 1,
    message = 2,
};

} // namespace stagewright::otlp
