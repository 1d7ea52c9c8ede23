#include "app/cli/verbs/device_kernels.h"

#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/option_set.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/options/training_options.h"
#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "engine/check/kernel_times.h"

namespace stagewright {

namespace {

double rateOf(const KernelTime& kernel) // FLOP or bytes a nanosecond: GFLOP/s or GB/s
{
    return (kernel.flops > 0 ? kernel.flops : kernel.bytes) / kernel.nanos;
}

} // namespace

void addKernelTimesOptions(OptionSet& verb, Setup& setup)
{
    verb.value("--kernels", &setup.model,
               "Time each kernel of one rank at this model's shapes, beside a large GEMM and a large copy")
        .form("KEY=N,…");
    setup.backend = "cpu";
    addSetupOptions(verb, setup, SetupKernels,
                    {{"--backend", "With --kernels: the device to time [cpu]"},
                     {"--microbatch-size", "With --kernels: samples per microbatch [4]"},
                     {"--host", "Of this host; see 'stagewright hosts'"}});
}

Result<int> showKernelTimes(Session& session, const Setup& setup)
{
    auto model = parseWorkload(setup.model);
    if (!model) return tl::unexpected(std::move(model.error()).with("--kernels"));
    const auto kernels =
        timeKernels(setup.backend, deviceOptionsOf(setup), **model, setup.microbatchSize, session.stop());
    if (!kernels) return tl::unexpected(kernels.error());

    using Align = Table::Align;
    Table table(
        {{"kernel"}, {"shape"}, {"time", Align::Right}, {"rate", Align::Right}, {"of the large", Align::Right}});
    Json array = Json::array();
    const double product = rateOf(kernels->at(0)), copy = rateOf(kernels->at(1));
    for (const KernelTime& kernel : *kernels) {
        const bool computes = kernel.flops > 0;
        const double rate = rateOf(kernel), share = rate / (computes ? product : copy);
        table.add({kernel.kernel, kernel.shape, fmt::format("{:.1f} µs", kernel.nanos / 1e3),
                   computes && rate >= 1e3 ? fmt::format("{:.1f} TFLOP/s", rate / 1e3)
                                           : fmt::format("{:.1f} {}", rate, computes ? "GFLOP/s" : "GB/s"),
                   fmt::format("{:.0f} %", 100 * share)});
        array.push_back({{"kernel", kernel.kernel},
                         {"shape", kernel.shape},
                         {"time_ns", kernel.nanos},
                         {"flops", static_cast<std::int64_t>(kernel.flops)},
                         {"bytes", static_cast<std::int64_t>(kernel.bytes)},
                         {"share_of_large", share}});
    }
    if (session.json)
        session.answer({{"backend", setup.backend},
                        {"model", toText(**model)},
                        {"microbatch_size", setup.microbatchSize},
                        {"kernels", std::move(array)}});
    session.out(table.text(session.colourOut()));
    return ExitDone;
}

} // namespace stagewright
