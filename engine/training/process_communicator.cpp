#include "engine/training/process_communicator.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "engine/training/rank_report.h"
#include "engine/training/resume.h"
#include "engine/training/training_state.h"
#include "engine/transport/bytes.h"

namespace stagewright {

namespace {

enum Tag : int {
    MeetTag,  // to the leader: this process's sums
    GoTag,    // from it: all sums
    AgreeTag, // to the leader, and its answer
    AgreedTag,
    OrderTag,  // from the leader
    ReportTag, // to it
    WeightsTag,
    StateTag,
    ClockTag,
    StopTag, // to all
    BeatTag, // to the leader
    LeadTag, // from it: that it lives
    AskTag,  // from the leader: the flight record of a rank
    FlightTag,
    TagCount,
};

constexpr Nanos beatEvery = 250'000'000;
constexpr Nanos lookEvery = 20'000'000;
constexpr Nanos longestSilence = 4'000'000'000; // of a process that this one can't see end
// How long the leader, which nobody else watches, may be silent, and how much longer before its first sign: a busy
// machine may hold it up, and it may begin later than the others.
constexpr Nanos leaderSilence = 5'000'000'000, leaderBegins = 60'000'000'000;
constexpr Nanos oneByOne = 2'000'000'000; // the first of the others speaks for them
constexpr int roundTrips = 16;            // before a step, to clocks that may have drifted
constexpr Nanos flightPatience = 500'000'000;
constexpr Nanos weightsPatience = 60'000'000'000;

void putError(ByteWriter& bytes, const std::optional<Error>& error)
{
    bytes.put<std::uint8_t>(error ? 1 : 0);
    if (!error) return;
    bytes.put(error->code);
    bytes.text(error->message);
    bytes.text(error->remedy);
}

std::optional<Error> getError(ByteReader& bytes)
{
    if (bytes.get<std::uint8_t>() == 0) return std::nullopt;
    Error error;
    error.code = bytes.get<ErrorCode>();
    error.message = bytes.text();
    error.remedy = bytes.text();
    return error;
}

class Communicator final : public ProcessCommunicator {
public:
    Communicator(TrainingState& state, std::shared_ptr<ProcessJob> job, const RanksByProcess& where, int firstTag)
        : m_state(state), m_job(std::move(job)), m_where(where), m_firstTag(firstTag), m_sums(state.sums.size()),
          m_reports(static_cast<std::size_t>(m_job->count())), m_heard(static_cast<std::size_t>(m_job->count()))
    {
        for (int other = 0; other < m_job->count(); ++other) m_clocks.push_back(m_job->clockOf(other));
    }
    ~Communicator() override { Communicator::end(); }

    bool isHere(int rank) const override { return m_where.processOf(rank) == m_job->index(); }
    bool leads() const override { return m_job->index() == 0; }
    ProcessJob& job() override { return *m_job; }

    void begin() override
    {
        const char* folder = std::getenv(flightFolderVariable);
        for (int rank = 0; folder != nullptr && rank < m_where.ranks; ++rank)
            if (isHere(rank))
                flightLog(rank).writeTo(
                    FlightPage::create(folder, {m_state.schedule->name, m_firstTag, rank, m_where.ranks, leads()}));
        m_heard[0] = monotonicNow();
        m_keeper = std::thread([this] { keep(); });
    }

    void end() override
    {
        if (!m_keeper.joinable()) return;
        if (leads()) sayToAll(OrderTag, orderOf({Request::Kind::Leave, {}, 0, 0}));
        {
            const std::lock_guard lock(m_mutex);
            m_ends = true;
        }
        m_wake.notify_all();
        m_keeper.join();
        // The leader says what went wrong; where it can't any more, what the others leave does.
        for (int rank = 0; rank < m_where.ranks; ++rank) {
            if (!isHere(rank)) continue;
            if (!leads() && m_state.control.stopped()) flightLog(rank).leaveBehind();
            flightLog(rank).writeTo(nullptr);
        }
    }

    void wake() override
    {
        {
            const std::lock_guard lock(m_mutex);
            m_early = true;
        }
        m_wake.notify_all();
    }

    bool meet(int rank, std::span<const StageSum> sums, std::vector<double>* all,
              const std::function<void()>& last) override
    {
        for (const StageSum& one : sums) m_sums[static_cast<std::size_t>(one.place)] = one.sum;
        if (!m_state.control.meet([] {})) return false;
        const bool speaks = rank == m_job->index() * m_where.perProcess; // the first rank of a process for all of it
        if (speaks && !meetOthers(last)) return false;
        if (!m_state.control.meet([] {})) return false;
        if (all != nullptr) *all = m_sums;
        return true;
    }

    Result<void> agree(std::optional<Error> error) override
    {
        ByteWriter own;
        putError(own, error);
        if (!leads()) {
            m_job->say(0, m_firstTag + AgreeTag, own.take());
            STAGEWRIGHT_TRY(auto answer, hearFrom(0, AgreedTag));
            ByteReader bytes(answer);
            if (std::optional<Error> agreed = getError(bytes)) return tl::unexpected(std::move(*agreed));
            return {};
        }
        for (int other = 1; other < m_job->count(); ++other) {
            auto said = hearFrom(other, AgreeTag);
            if (!said && !error) error = std::move(said.error());
            if (!said) continue;
            ByteReader bytes(*said);
            std::optional<Error> theirs = getError(bytes);
            if (theirs && !error) error = std::move(*theirs).with(m_job->nameOf(other));
        }
        ByteWriter answer;
        putError(answer, error);
        sayToAll(AgreedTag, answer.take());
        if (error) return tl::unexpected(std::move(*error));
        return {};
    }

    void order(const StepOrder& step) override
    {
        for (int other = 1; other < m_job->count(); ++other)
            if (!m_job->sharesClock(other)) setClock(other);
        std::fill(m_heard.begin(), m_heard.end(), monotonicNow());
        for (auto& report : m_reports) report.reset();
        m_running = true;
        sayToAll(OrderTag, orderOf({Request::Kind::Step, step, 0, 0}));
    }

    bool rested(Nanos atMost) override
    {
        const auto all = [this] {
            bool whole = true;
            for (int other = 1; other < m_job->count(); ++other) {
                auto& report = m_reports[static_cast<std::size_t>(other)];
                if (!report) report = m_job->hear(other, m_firstTag + ReportTag);
                whole = whole && (report || (m_state.control.stopped() && m_job->hasEnded(other)));
            }
            return whole;
        };
        const bool whole = m_job->await(
            all, [] { return false; }, atMost);
        if (whole) m_running = false;
        return whole;
    }

    Result<void> takeOver() override
    {
        for (int other = 1; other < m_job->count(); ++other) {
            const auto& report = m_reports[static_cast<std::size_t>(other)];
            if (!report || !takeReport(m_state, *report, m_clocks[static_cast<std::size_t>(other)].offset))
                return fail(ErrorCode::Failed,
                            fmt::format("{}: its report of the step is damaged", m_job->nameOf(other)));
        }
        return {};
    }

    void report() override
    {
        m_job->say(0, m_firstTag + ReportTag, reportOf(m_state, [this](int rank) { return isHere(rank); }));
    }

    std::optional<Request> request() override
    {
        const auto heard = m_job->hear(0, m_firstTag + OrderTag);
        if (!heard) return std::nullopt;
        return ByteReader(*heard).get<Request>();
    }

    Result<StageWeights> weightsOf(int stage, int rank) override
    {
        STAGEWRIGHT_TRY(auto heard, ask({Request::Kind::Weights, {}, stage, rank}, WeightsTag, "weights"));
        return weightsFrom(heard);
    }
    Result<void> addSavedOf(int stage, int rank, SavedTraining& saved) override
    {
        STAGEWRIGHT_TRY(auto heard, ask({Request::Kind::State, {}, stage, rank}, StateTag, "state"));
        if (!takeSaved(heard, saved)) return fail(ErrorCode::Failed, "state from another process is damaged");
        return {};
    }
    Nanos clockBand() const override
    {
        Nanos band = 0;
        for (const ClockOffset& clock : m_clocks) band = std::max(band, clock.band);
        return band;
    }
    void sendClock() override
    {
        ByteWriter now;
        now.put(monotonicNow());
        m_job->say(0, m_firstTag + ClockTag, now.take());
    }
    void sendWeights(const Request& request) override
    {
        std::vector<float> owned;
        m_job->say(0, m_firstTag + WeightsTag,
                   bytesOf(ownedWeights(*m_state.stageOn(request.stage, request.rank).model, owned)));
    }

    void sendState(const Request& request) override
    {
        m_job->say(0, m_firstTag + StateTag, savedBytes(m_state.stageOn(request.stage, request.rank)));
    }

    void stop(const Error& error) override
    {
        if (m_told.exchange(true)) return;
        ByteWriter bytes;
        putError(bytes, error);
        const std::vector<std::byte> message = bytes.take();
        for (int other = 0; other < m_job->count(); ++other)
            if (other != m_job->index()) m_job->say(other, m_firstTag + StopTag, message);
    }

    std::string silence(int rank) override
    {
        const int process = m_where.processOf(rank);
        if (isHere(rank) || monotonicNow() - m_heard[static_cast<std::size_t>(process)] < 6 * beatEvery) return {};
        return m_job->nameOf(process) + " gives no sign of life";
    }

    std::optional<Error> lost() override
    {
        for (int other = 0; other < m_job->count(); ++other)
            if (m_job->hasEnded(other)) return Error{ErrorCode::Failed, endedText(other), {}};
        return std::nullopt;
    }

    RankRecord flightOf(int rank) override
    {
        if (isHere(rank)) return m_state.ranks[static_cast<std::size_t>(rank)].flight.record(rank);
        const int process = m_where.processOf(rank);
        ByteWriter ask;
        ask.put(rank);
        m_job->say(process, m_firstTag + AskTag, ask.take());
        std::optional<std::vector<std::byte>> heard;
        const auto came = [&] { return (heard = m_job->hear(process, m_firstTag + FlightTag)).has_value(); };
        RankRecord record;
        record.rank = rank;
        record.present = m_job->await(
            came, [] { return false; }, flightPatience);
        if (!record.present) return record;
        ByteReader bytes(*heard);
        record.forgotten = bytes.get<std::uint64_t>();
        record.entries = bytes.list<FlightEntry>();
        record.present = bytes.good();
        return record;
    }

    std::vector<std::pair<std::string, std::string>> facts() const override
    {
        auto facts = m_job->processes().facts();
        facts.emplace_back("processes", fmt::format("{}", m_job->count()));
        std::string hosts;
        std::string offsets;
        std::string bands;
        for (int rank = 0; rank < m_where.ranks; ++rank) {
            const int process = m_where.processOf(rank);
            const char* comma = rank == 0 ? "" : ",";
            hosts += comma + m_job->placeOf(process).host;
            offsets += fmt::format("{}{}", comma, m_job->measuredClock(process).offset);
            bands += fmt::format("{}{}", comma, m_job->measuredClock(process).band);
        }
        facts.emplace_back("hosts", hosts); // by rank, as the following
        facts.emplace_back("clock_offsets_ns", offsets);
        facts.emplace_back("clock_bands_ns", bands);
        facts.emplace_back("clock_band_ns", fmt::format("{}", clockBand()));
        return facts;
    }

private:
    // What the process of a rank answers between steps.
    Result<std::vector<std::byte>> ask(const Request& request, Tag tag, const char* what)
    {
        const int process = m_where.processOf(request.rank);
        m_job->say(process, m_firstTag + OrderTag, orderOf(request));
        std::optional<std::vector<std::byte>> heard;
        const auto came = [&] { return (heard = m_job->hear(process, m_firstTag + tag)).has_value(); };
        if (!m_job->await(
                came, [this] { return m_state.control.stopped(); }, weightsPatience))
            return fail(ErrorCode::Failed,
                        fmt::format("stage {}: {} does not send its {}", request.stage, m_job->nameOf(process), what));
        return std::move(*heard);
    }
    FlightLog& flightLog(int rank) { return m_state.ranks[static_cast<std::size_t>(rank)].flight; }
    static std::vector<std::byte> orderOf(const Request& request)
    {
        ByteWriter bytes;
        bytes.put(request);
        return bytes.take();
    }
    void sayToAll(Tag tag, const std::vector<std::byte>& bytes)
    {
        for (int other = 1; other < m_job->count(); ++other) m_job->say(other, m_firstTag + tag, bytes);
    }

    // Clocks of different machines drift by tens of microseconds a second.
    void setClock(int other)
    {
        std::vector<PingPong> trips;
        for (int i = 0; i < roundTrips; ++i) {
            PingPong trip;
            trip.sent = monotonicNow();
            m_job->say(other, m_firstTag + OrderTag, orderOf({Request::Kind::Clock, {}, 0, 0}));
            std::optional<std::vector<std::byte>> pong;
            const auto came = [&] { return (pong = m_job->hear(other, m_firstTag + ClockTag)).has_value(); };
            if (!m_job->await(came, [this] { return m_state.control.stopped(); })) return;
            trip.received = monotonicNow();
            trip.there = ByteReader(*pong).get<Nanos>();
            trips.push_back(trip);
        }
        m_clocks[static_cast<std::size_t>(other)] = clockOffsetOf(trips);
    }

    // While stages are made and no step runs; ends with an error where the other has ended.
    Result<std::vector<std::byte>> hearFrom(int other, Tag tag)
    {
        std::optional<std::vector<std::byte>> heard;
        bool ended = false;
        int turns = 0;
        const auto came = [&] {
            if ((heard = m_job->hear(other, m_firstTag + tag))) return true;
            if (++turns % 256 == 0) ended = m_job->hasEnded(other);
            return false;
        };
        if (m_job->await(came, [&] { return ended; })) return std::move(*heard);
        return fail(ErrorCode::Failed, endedText(other));
    }

    std::string ranksOf(int process) const
    {
        const int first = process * m_where.perProcess;
        const int last = first + m_where.perProcess - 1;
        const Schedule& schedule = *m_state.schedule;
        std::string replicas;
        if (schedule.replicas > 1) {
            const int from = schedule.replicaOf(first);
            const int to = schedule.replicaOf(last);
            replicas =
                from == to ? fmt::format(" of replica {}", from) : fmt::format(" of replicas {} to {}", from, to);
        }
        if (m_where.perProcess == 1) return fmt::format("rank {}{}", first, replicas);
        return fmt::format("ranks {} to {}{}", first, last, replicas);
    }
    std::string endedText(int process) const
    {
        return fmt::format("{}: {} has ended, killed or crashed", ranksOf(process), m_job->nameOf(process));
    }

    bool meetOthers(const std::function<void()>& last)
    {
        const auto stopped = [this] { return m_state.control.stopped(); };
        const auto hear = [&](int from, Tag tag) {
            std::optional<std::vector<std::byte>> heard;
            m_job->await([&] { return (heard = m_job->hear(from, m_firstTag + tag)).has_value(); }, stopped);
            return heard;
        };
        const int own = m_job->index();
        if (own != 0) {
            ByteWriter mine;
            mine.list(std::span<const double>(m_sums));
            m_job->say(0, m_firstTag + MeetTag, mine.take());
            const auto go = hear(0, GoTag);
            if (!go) return false;
            std::vector<double> all = ByteReader(*go).list<double>();
            if (all.size() == m_sums.size()) m_sums = std::move(all);
            last();
            return true;
        }
        for (int other = 1; other < m_job->count(); ++other) {
            const auto came = hear(other, MeetTag);
            if (!came) return false;
            const std::vector<double> theirs = ByteReader(*came).list<double>();
            for (std::size_t place = 0; place < m_sums.size() && place < theirs.size(); ++place)
                if (m_where.processOf(m_state.sums[place].rank) == other) m_sums[place] = theirs[place];
        }
        last();
        ByteWriter all;
        all.list(std::span<const double>(m_sums));
        sayToAll(GoTag, all.take());
        return true;
    }

    // The thread besides the ranks.
    void keep()
    {
        Nanos nextBeat = 0;
        std::unique_lock lock(m_mutex);
        while (!m_ends) {
            lock.unlock();
            Nanos next = lookEvery;
            const Nanos now = monotonicNow();
            try {
                next = lookAround(now, nextBeat);
            } catch (const std::exception& e) {
                stopHere({ErrorCode::Failed, fmt::format("{}: {}", m_job->nameOf(m_job->index()), e.what()), {}});
            }
            lock.lock();
            m_wake.wait_for(lock, std::chrono::nanoseconds(next), [this] { return m_ends || m_early; });
            m_early = false;
        }
    }

    Nanos lookAround(Nanos now, Nanos& nextBeat)
    {
        m_job->tidy();
        for (int other = 0; other < m_job->count(); ++other) {
            if (other == m_job->index()) continue;
            if (const auto said = m_job->hear(other, m_firstTag + StopTag)) {
                ByteReader bytes(*said);
                if (std::optional<Error> error = getError(bytes)) stopHere(std::move(*error));
            }
            if (leads()) hearBeat(other, now);
        }
        while (!leads() && m_job->hear(0, m_firstTag + LeadTag)) {
            m_heard[0] = now;
            m_leaderBegan = true;
        }
        if (!leads()) answerFlight();
        if (now >= nextBeat) {
            nextBeat = now + beatEvery;
            if (leads())
                sayToAll(LeadTag, {});
            else
                sayBeat();
            lookForEnded(now);
            if (!leads()) lookAtLeader(now);
        }
        auto* transport = static_cast<ProcessesTransport*>(m_state.transport.get());
        const Nanos due = transport->pump(now);
        return due < 0 ? lookEvery : std::clamp<Nanos>(due - monotonicNow(), 1000, lookEvery);
    }

    struct Beat {
        int rank = 0;
        RankPhase phase = RankPhase::AtRest;
        int position = -1;
        std::uint64_t progress = 0;
    };

    void sayBeat()
    {
        std::vector<Beat> beats;
        for (int rank = 0; rank < m_where.ranks; ++rank) {
            if (!isHere(rank)) continue;
            const RankStatus& status = m_state.ranks[static_cast<std::size_t>(rank)].status;
            beats.push_back({rank, status.phase.load(), status.position.load(), status.progress.load()});
        }
        ByteWriter bytes;
        bytes.list(std::span<const Beat>(beats));
        m_job->say(0, m_firstTag + BeatTag, bytes.take());
    }

    void hearBeat(int other, Nanos now)
    {
        while (const auto said = m_job->hear(other, m_firstTag + BeatTag)) {
            m_heard[static_cast<std::size_t>(other)] = now;
            for (const Beat& beat : ByteReader(*said).list<Beat>()) {
                if (beat.rank < 0 || beat.rank >= m_where.ranks || isHere(beat.rank)) continue;
                RankStatus& status = m_state.ranks[static_cast<std::size_t>(beat.rank)].status;
                status.position.store(beat.position);
                status.phase.store(beat.phase);
                status.progress.store(beat.progress);
            }
        }
    }

    void answerFlight()
    {
        const auto asked = m_job->hear(0, m_firstTag + AskTag);
        if (!asked) return;
        const int rank = ByteReader(*asked).get<int>();
        if (rank < 0 || rank >= m_where.ranks) return;
        const RankRecord record = m_state.ranks[static_cast<std::size_t>(rank)].flight.record(rank);
        ByteWriter bytes;
        bytes.put(record.forgotten);
        bytes.list(std::span<const FlightEntry>(record.entries));
        m_job->say(0, m_firstTag + FlightTag, bytes.take());
    }

    void lookForEnded(Nanos now)
    {
        if (m_state.control.stopped()) return;
        for (int other = 0; other < m_job->count(); ++other) {
            if (other == m_job->index()) continue;
            const bool seen = m_job->placeOf(other).pidSpace == m_job->placeOf(m_job->index()).pidSpace;
            const bool silent =
                leads() && m_running && !seen && now - m_heard[static_cast<std::size_t>(other)] > longestSilence;
            if (m_job->hasEnded(other))
                stopHere({ErrorCode::Failed, endedText(other), {}});
            else if (silent)
                stopHere({ErrorCode::Failed,
                          fmt::format("{}: {} gives no sign of life for {} s", ranksOf(other), m_job->nameOf(other),
                                      longestSilence / 1'000'000'000),
                          "see whether the host can be reached"});
        }
    }

    // A leader that was stopped or hangs as a whole can't say so, and would hold the job for ever.
    void lookAtLeader(Nanos now)
    {
        if (m_state.control.stopped()) return;
        const auto timeout = static_cast<Nanos>(m_state.options.timeoutSeconds * 1e9);
        const Nanos limit = std::max(timeout, leaderSilence) + (m_leaderBegan ? 0 : leaderBegins);
        if (now - m_heard[0] < limit + oneByOne * (m_job->index() - 1)) return;
        m_job->giveUp(0);
        stopHere({ErrorCode::Failed,
                  fmt::format("{}: {} gives no sign of life for {} s: it was stopped, or hangs", ranksOf(0),
                              m_job->nameOf(0), limit / 1'000'000'000),
                  "complete steps are in the run file"});
    }

    void stopHere(Error error)
    {
        m_state.control.stop(std::move(error));
        m_state.transport->interrupt();
    }

    TrainingState& m_state;
    std::shared_ptr<ProcessJob> m_job;
    RanksByProcess m_where;
    int m_firstTag;
    std::vector<double> m_sums;        // by place
    std::vector<ClockOffset> m_clocks; // by process, as of this step
    std::vector<std::optional<std::vector<std::byte>>> m_reports;
    std::vector<std::atomic<Nanos>> m_heard; // by process: when it last gave a sign of life
    std::atomic<bool> m_running = false;
    bool m_leaderBegan = false; // a sign of it has come; the keeper's
    std::atomic<bool> m_told = false;
    std::thread m_keeper;
    std::mutex m_mutex;
    std::condition_variable m_wake;
    bool m_early = false;
    bool m_ends = false;
};

} // namespace

Result<RanksByProcess> ranksByProcess(int ranks, const ProcessJob& job)
{
    if (ranks % job.count() != 0)
        return fail(ErrorCode::Usage,
                    fmt::format("{} ranks can't be spread evenly over {} processes", ranks, job.count()),
                    fmt::format("start {} processes, or give -p {}", ranks, job.count()));
    return RanksByProcess{ranks, ranks / job.count()};
}

Result<std::unique_ptr<ProcessCommunicator>>
makeProcessCommunicator(TrainingState& state, std::shared_ptr<ProcessJob> job, const RanksByProcess& where)
{
    STAGEWRIGHT_TRY(const auto first, job->reserveTags(TagCount));
    return std::make_unique<Communicator>(state, std::move(job), where, first);
}

} // namespace stagewright
