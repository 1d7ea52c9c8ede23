// Times, sizes, links and ways to gather and reduce as options and runs write them.
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

Result<Nanos> parseTime(const std::string& text);  // "50us", "1.5ms", "2s", "800ns"
Result<Bytes> parseBytes(const std::string& text); // "64MB", "2GiB", "4096B"
// "26MiB" of costs in bytes, "3" microbatches of a rank where they count activations. Usage also where they know none.
Result<Bytes> parseActivations(const std::string& text, const CostModel& costs);
bool isPlainNumber(const std::string& text);        // without a unit: "3", "2.5"
Result<double> parseSpeed(const std::string& text); // bytes a second, of "10GB/s", "100Gbit/s"; more than 0
Result<Link> parseLink(const std::string& text);    // "50us,10GB/s", "1ms"
// "15GB/s", "out=15GB/s,in=12GB/s,latency=10us,duplex=full"; "duplex=full" alone says no speed.
Result<Copies> parseCopies(std::string_view text);

// "two-level:per-host=8:between=50us,10GB/s:shared". The link within a host is left as it is; without :between= hosts
// have the same one.
struct CollectiveWay {
    CollectiveCosts costs;
    ResourceUse lane = ResourceUse::Beside;
};
Result<CollectiveWay> parseCollectives(std::string_view text);

} // namespace stagewright
