// Orders that ranks find while they run, instead of following their lists: by arrival (AxoNN, Singh and Bhatele 2022,
// section III), or a list that only ranks what is ready. What comes out is a schedule, which simulates to the same
// times as long as messages don't queue on their links, and is edited and trained as any other. A stage's backwards
// stay in the list's order of microbatches, so that gradients are the same to the last bit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct ReadyOrder {
    enum class By : std::uint8_t {
        List,    // as given
        Arrival, // rank 0 starts `limit` forwards, then one behind each backward; the last rank runs a backward directly
                 // behind its forward; a free rank takes what has come, of one queue from either side
        Hint,    // the list; where its next op lacks an input, the first later one that is ready goes ahead of it: a
        // forward, if the rank's memory allows, or work that no other op waits for. Gradients never go ahead: run
        // early they hold up the forwards that other ranks wait for
    };
    enum class First : std::uint8_t { Came, Forward, Backward }; // of Arrival, where both have come
    By by = By::List;
    First first = First::Came;
    int limit = 0; // microbatches that a rank holds at most; 0: as many as ranks (Arrival), as in the list (Hint)
};
// "list", "arrival", "hint", with ":limit=L" and, of arrival, ":rule=arrival|forward_first|backward_first"; with a
// comma between the two. Usage.
Result<ReadyOrder> parseReadyOrder(std::string_view text);
std::string toText(const ReadyOrder& order);

// The order in which a valid schedule's ops run with these costs. Usage: by arrival, of other lists than one stage on
// each rank with forwards and backwards; by either, of lists with sends and receives or copies to the host. Overlapped
// pairs stay together. Messages take what they take on an empty link. O(ops · log ops) with a short search for ops that
// go ahead.
Result<Schedule> orderByReadiness(const Schedule& schedule, const CostModel& costs, const ReadyOrder& order);

// Its lists in the order in which they ran: by rank, places in the list, of an overlapped pair that of its first op.
Schedule inOrder(const Schedule& schedule, std::span<const std::vector<std::size_t>> ran);

} // namespace stagewright
