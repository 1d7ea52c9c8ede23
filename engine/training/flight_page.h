// FlightPage: a rank's newest messages and ops in a file that outlives its process: the rank writes to mapped memory,
// so that what it did last can be read even when it was killed. Whoever started the processes names the folder
// (STAGEWRIGHT_FLIGHT_FOLDER) and reads what is left there; a process that ends in good order leaves nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedules/execute/flight_record.h"

namespace stagewright {

inline constexpr const char* flightFolderVariable = "STAGEWRIGHT_FLIGHT_FOLDER";

struct FlightPlace {
    std::string schedule;      // its name; a long one is cut
    std::int32_t training = 0; // of the processes, the same number in each
    std::int32_t rank = 0;
    std::int32_t ranks = 1;
    bool leads = false; // of the process that speaks for all
};

class FlightPage {
public:
    // Null where the file can't be made.
    static std::unique_ptr<FlightPage> create(const std::string& folder, const FlightPlace& place);
    ~FlightPage(); // removes the file unless it is to stay
    FlightPage(const FlightPage&) = delete;
    FlightPage& operator=(const FlightPage&) = delete;

    // As FlightRing's, with the index that it gave. One thread at a time.
    void add(std::uint64_t index, const FlightEntry& entry);
    void finish(std::uint64_t index);
    void stay() { m_stays = true; }

private:
    FlightPage(std::string path, void* memory) : m_path(std::move(path)), m_memory(memory) {}
    std::string m_path;
    void* m_memory;
    bool m_stays = false;
};

// What the training left whose ranks wrote last.
struct FlightsLeft {
    std::string schedule;
    int ranks = 0;
    bool leader = false;             // one is of the process that speaks for all
    std::vector<RankRecord> records; // by rank; of a rank that left nothing, not present
};
// What the files of a folder tell; none: nothing is there. Damaged files are passed over.
std::optional<FlightsLeft> readFlights(const std::string& folder);

} // namespace stagewright
