// Cost files of any bytes: read or refused; what is read comes back from its own writing, and times a schedule.
#include <cstdint>
#include <string>

#include "require.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/text/cost_json.h"

using namespace stagewright;

namespace {

const Schedule& sample()
{
    static const Schedule schedule = [] {
        Shape shape;
        shape.ranks = 2;
        shape.microbatches = 3;
        return makeSchedule("zb-h1", shape).value();
    }();
    return schedule;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto costs = readCostsJson(std::string(reinterpret_cast<const char*>(data), size));
    if (!costs) {
        require(!costs.error().message.empty());
        return 0;
    }
    const std::string written = writeCostsJson(*costs);
    const auto back = readCostsJson(written);
    require(back.has_value() && writeCostsJson(*back) == written);
    if (const auto timed = simulate(sample(), *costs); !timed) require(!timed.error().message.empty());
    return 0;
}
