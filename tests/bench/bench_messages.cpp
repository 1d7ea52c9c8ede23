// Messages between two processes: the engine's transport against plain MPI, both over the same Open MPI, in turn, there
// and back:
//
//     mpirun -n 2 build/release/bin/bench_messages [ROUNDS]
//
// latency is half of a round trip, medians over the rounds; ratio: ours over MPI's, with the quartiles of the rounds'
// own ratios. The transport finds a message by its key, takes it into a buffer of the receiver's allocator and gives
// the sender's back; MPI_Recv writes into one buffer that is always the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <mpi.h>

#include "engine/mpi/mpi_processes.h"
#include "engine/transport/processes_transport.h"
#include "engine/transport/threads_transport.h"
#include "profiler/record/clock.h"

using namespace stagewright;

namespace {

constexpr int trips = 200; // a round

double quantile(std::vector<double> values, double q)
{
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

// ns of half a round trip; on rank 0.
double plain(MPI_Comm comm, int rank, std::vector<float>& there, std::vector<float>& back)
{
    MPI_Barrier(comm);
    const Nanos begin = monotonicNow();
    const int bytes = static_cast<int>(there.size() * sizeof(float));
    for (int i = 0; i < trips; ++i) {
        if (rank == 0) MPI_Send(there.data(), bytes, MPI_BYTE, 1, i, comm);
        MPI_Recv(back.data(), bytes, MPI_BYTE, 1 - rank, i, comm, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(there.data(), bytes, MPI_BYTE, 0, i, comm);
    }
    return static_cast<double>(monotonicNow() - begin) / (2.0 * trips);
}

double ours(MPI_Comm comm, int rank, ProcessesTransport& transport, Allocator& allocator, std::size_t floats)
{
    MPI_Barrier(comm);
    const Nanos begin = monotonicNow();
    const MemoryTag tag{MemoryCategory::Communication, 0, -1};
    const auto send = [&](const MessageKey& key) {
        transport.send(rank, 1 - rank, key, allocator.take(floats, tag), 0);
    };
    const auto take = [&](const MessageKey& key) {
        transport.wait(rank, key);
        static_cast<void>(transport.take(rank, key, allocator));
        while (transport.giveBack(rank)) {
        }
    };
    for (int i = 0; i < trips; ++i) {
        MessageKey activations;
        activations.microbatch = i;
        activations.stage = 1;
        MessageKey gradient = activations;
        gradient.stage = 0;
        gradient.gradient = true;
        if (rank == 0) send(activations);
        take(rank == 0 ? gradient : activations);
        if (rank == 1) send(gradient);
    }
    const double taken = static_cast<double>(monotonicNow() - begin) / (2.0 * trips);
    transport.settle(rank);
    while (transport.giveBack(rank)) {
    }
    return taken;
}

int fails(const Error& error)
{
    std::fprintf(stderr, "bench_messages: %s\n  %s\n", error.message.c_str(), error.remedy.c_str());
    return EXIT_FAILURE;
}

} // namespace

int main(int count, char** arguments)
{
    const int rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 21;
    auto processes = mpi::joinProcesses();
    if (!processes) return fails(processes.error());
    auto met = ProcessJob::meet(std::move(*processes), "bench");
    if (!met) return fails(met.error());
    const std::shared_ptr<ProcessJob> job = *met;
    if (job->count() != 2) return fails({ErrorCode::Usage, "two processes are needed", "mpirun -n 2 bench_messages"});
    const int rank = job->index();
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const Placement placement = Placement::loop(2, 2);
    CellSpace cells;
    cells.stages = 2;
    cells.microbatches = trips;
    std::vector<ExpectedMessage> expected;
    for (int i = 0; i < trips; ++i) {
        MessageKey key;
        key.microbatch = i;
        key.stage = static_cast<std::uint16_t>(rank);
        key.gradient = rank == 0;
        expected.push_back({key, 1 - rank, rank});
    }
    {
        Allocator allocator;
        auto transport = makeProcessesTransport(job, {2, 1}, placement, cells, expected, {}, {},
                                                makeThreadsTransport(2, placement, cells), [] {});
        if (!transport) return fails(transport.error());
        if (rank == 0)
            std::printf("%10s %14s %14s %7s %15s %14s %14s\n", "bytes", "MPI, us", "ours, us", "ratio", "quartiles",
                        "MPI, GB/s", "ours, GB/s");
        for (const std::size_t bytes : {8UL, 1024UL, 65536UL, 1048576UL, 16777216UL}) {
            const std::size_t floats = std::max<std::size_t>(1, bytes / sizeof(float));
            std::vector<float> there(floats, 1.0F);
            std::vector<float> back(floats);
            std::vector<double> theirs;
            std::vector<double> own;
            std::vector<double> ratios;
            for (int round = 0; round < rounds + 1; ++round) {
                const bool first = round % 2 == 0; // who starts alternates
                double a = first ? plain(comm, rank, there, back) : 0;
                const double b = ours(comm, rank, **transport, allocator, floats);
                if (!first) a = plain(comm, rank, there, back);
                if (round == 0) continue; // buffers are taken, pages touched
                theirs.push_back(a);
                own.push_back(b);
                ratios.push_back(b / a);
            }
            const double a = quantile(theirs, 0.5);
            const double b = quantile(own, 0.5);
            if (rank == 0)
                std::printf("%10zu %14.2f %14.2f %7.2f   %5.2f … %5.2f %14.2f %14.2f\n", floats * sizeof(float),
                            a / 1e3, b / 1e3, quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75),
                            static_cast<double>(bytes) / a, static_cast<double>(bytes) / b);
            std::fflush(stdout);
        }
    }
    MPI_Comm_free(&comm);
    job->close();
    return EXIT_SUCCESS;
}
