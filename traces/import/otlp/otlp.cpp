#include "traces/import/otlp/otlp.h"

#include "traces/format/format_registry.h"
#include "traces/import/otlp/otlp_json.h"
#include "traces/import/otlp/otlp_protobuf.h"

namespace stagewright {

Result<void> readOtlp(ByteSource& source, bool json, const Progress& progress, OtlpSpans& to)
{
    if (!(json ? readOtlpJson : readOtlpProtobuf)(source, progress, to))
        return fail(ErrorCode::Cancelled, "reading was cancelled");
    progress.tell("reading", source.size(), source.size());
    return {};
}

bool startsLikeOtlpJson(std::string_view head)
{
    const std::size_t first = head.find_first_not_of("\xef\xbb\xbf \t\r\n");
    return first != std::string_view::npos && (head[first] == '{' || head[first] == '[') &&
           head.find("\"resourceSpans\"") != std::string_view::npos;
}

namespace formats {

namespace {

bool looksLikeOtlp(std::string_view head) { return startsLikeOtlpJson(head) || startsLikeOtlp(head); }

Result<ForeignFile> readOtlpFile(const std::string& path, const ImportOptions&, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto source, ByteSource::open(path));
    OtlpSpans spans;
    STAGEWRIGHT_CHECK(readOtlp(*source, startsLikeOtlpJson(headOf(path)), progress, spans));
    return spans.finish();
}

} // namespace

extern const FormatInfo otlp;
const FormatInfo otlp{.name = "otlp",
                      .title = "OpenTelemetry (OTLP)",
                      .reads = "OpenTelemetry traces (OTLP), JSON and protobuf",
                      .suffixes = {".otlp", ".jsonl"},
                      .recordKernels = "a job's spans say what its host did: record its kernels with torch.profiler",
                      .sniff = looksLikeOtlp,
                      .read = readOtlpFile};

} // namespace formats

} // namespace stagewright
