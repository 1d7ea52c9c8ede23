#include "widgets/timeline/run_panel.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "traces/run/run_facts.h"
#include "widgets/literals.h"
#include "widgets/timeline/device_bar.h"

namespace stagewright {

namespace {

std::shared_ptr<const Timeline> emptyTimeline(const RunFile::Content& content)
{
    TimelineBuilder builder(content.info.provenance, content.info.clock, content.info.ranks);
    builder.setUnits(content.timeUnit, content.memoryUnit);
    if (content.schedule) builder.setSchedule(content.schedule);
    builder.setMissingRanks(partOfPipeline(content.configuration, content.info.ranks));
    auto built = builder.build();
    return built ? *built : nullptr;
}

std::shared_ptr<TimelinePanel> bare(const RunFile::Content& content, const std::vector<RunFile::StepBounds>& steps,
                                    const QString& name)
{
    auto panel = std::make_shared<TimelinePanel>();
    panel->timeline = emptyTimeline(content);
    panel->name = name;
    panel->origin = content.begin;
    panel->duration = content.end - content.begin;
    panel->units = {content.timeUnit, content.memoryUnit};
    panel->part = true;
    panel->noOps = true;
    for (std::size_t track = 0; track < content.tracks.size(); ++track)
        if (content.tracks[track].lane == Lane::Compute && content.spanCount[track] > 0) panel->noOps = false;
    panel->byClass = panel->noOps;
    for (const RunFile::StepBounds& step : steps)
        panel->steps.push_back({step.step, step.begin - content.begin, step.end - content.begin});
    std::stable_sort(panel->steps.begin(), panel->steps.end(),
                     [](const PanelStep& a, const PanelStep& b) { return a.begin < b.begin; });
    panel->ranks.resize(static_cast<std::size_t>(std::max(0, content.info.ranks)));
    const auto places = placesOf(content.configuration, content.info.ranks);
    for (std::size_t rank = 0; rank < panel->ranks.size(); ++rank) {
        if (rank < places.size()) panel->ranks[rank].place = places[rank];
        panel->ranks[rank].rank = static_cast<int>(rank);
        panel->ranks[rank].title = u"Rank %1"_s.arg(rank);
        panel->ranks[rank].activations.rank = static_cast<int>(rank);
    }
    setReplicas(*panel, content.schedule.get());
    return panel;
}

std::set<int> stagesOf(const RunFile::Content& content, int rank)
{
    if (!content.schedule || rank >= content.schedule->ranks) return {};
    const auto stages = content.schedule->placement.stagesOf(rank);
    return {stages.begin(), stages.end()};
}

bool isShownBeside(Lane lane) { return lane != Lane::Compute; }

void setBubbleFraction(TimelinePanel& panel, double busy)
{
    if (panel.duration <= 0 || panel.ranks.empty()) return;
    panel.bubbleFraction = 1 - busy / (static_cast<double>(panel.duration) * static_cast<double>(panel.ranks.size()));
}

} // namespace

RunPanelBuilder::RunPanelBuilder(const RunFile::Content& content, const std::vector<RunFile::StepBounds>& steps,
                                 const QString& name)
    : m_content(content), m_panel(bare(content, steps, name)), m_rows(m_panel->ranks.size())
{
    for (std::size_t rank = 0; rank < m_rows.size(); ++rank) {
        m_rows[rank].stages = stagesOf(content, static_cast<int>(rank));
        m_rows[rank].tints =
            std::make_unique<RankTints>(content.schedule.get(), static_cast<int>(rank), m_rows[rank].stages);
    }
    for (std::size_t track = 0; track < content.tracks.size(); ++track) {
        const Track& t = content.tracks[track];
        const auto spans = static_cast<std::size_t>(content.spanCount[track]);
        if (t.lane == Lane::Compute) {
            PanelRank& rank = m_panel->ranks[static_cast<std::size_t>(t.rank)];
            rank.compute.reserve(rank.compute.size() + spans);
        } else if (isShownBeside(t.lane)) {
            m_work[track] = {t.rank, t.lane, t.name};
        }
    }
    constexpr std::int64_t mostIntervals = 1'500'000; // of all ranks
    const auto intervals = std::clamp<std::int64_t>(
        mostIntervals / std::max<std::int64_t>(1, static_cast<std::int64_t>(m_rows.size())), 200, 4000);
    m_interval = std::max<Nanos>(1, m_panel->duration / intervals);
}

void RunPanelBuilder::add(const RunFile::SpanBlock& block)
{
    const Track& track = m_content.tracks[block.track];
    const auto rank = static_cast<std::size_t>(track.rank);
    if (track.lane == Lane::Compute) {
        addOps(m_rows[rank], m_panel->ranks[rank], block.spans);
    } else if (const auto work = m_work.find(block.track); work != m_work.end()) {
        addWork(work->second, static_cast<std::size_t>(m_content.spanCount[block.track]), block);
    }
}

void RunPanelBuilder::addOps(Row& row, PanelRank& rank, std::span<const Span> spans)
{
    for (const Span& span : spans) {
        if (isCompute(span.op.kind) && !row.stages.contains(span.op.stage)) { // no schedule known
            row.stages.insert(span.op.stage);
            row.tints = std::make_unique<RankTints>(m_content.schedule.get(), rank.rank, row.stages);
        }
        const int tint = (*row.tints)(span.op);
        rank.compute.appendLoose(span, m_panel->origin, tint);
        m_panel->kinds |= 1u << static_cast<unsigned>(span.op.kind);
        m_panel->hasTints = m_panel->hasTints || tint % 4 != 0;
    }
}

// First fit, by start, as sublanes().
void RunPanelBuilder::addWork(Sublanes& work, std::size_t spans, const RunFile::SpanBlock& block)
{
    const Track& track = m_content.tracks[block.track];
    for (Span span : block.spans) {
        if (isRelease(span.op.kind)) continue; // takes no time
        const std::string_view name =
            span.label < m_content.labels.size() ? std::string_view(m_content.labels[span.label]) : std::string_view();
        const std::string_view shape =
            span.label < m_content.shapes.size() ? std::string_view(m_content.shapes[span.label]) : std::string_view();
        const int ink = inkOfWork(*m_panel, track, span.label, name, shape, m_classes);
        if (span.label != 0 && span.op == Op{}) span.op = makeFiller(0, 0); // foreign work
        std::size_t lane = 0;
        while (lane < work.freeAt.size() && work.freeAt[lane] > span.start) ++lane;
        if (lane == work.freeAt.size()) {
            work.freeAt.push_back(span.end);
            work.lanes.emplace_back();
            work.lanes.back().setLook(lookOf(m_panel->byClass, work.lane));
            if (lane == 0) work.lanes.back().reserve(spans);
        }
        work.freeAt[lane] = std::max(span.end, span.start);
        work.lanes[lane].appendLoose(span, m_panel->origin, 0, ink);
    }
}

void RunPanelBuilder::addMemory(std::span<const MemoryEvent> events)
{
    for (const MemoryEvent& event : events) {
        if (event.category != MemoryCategory::Activations || event.rank >= m_rows.size()) continue;
        auto& memory = m_rows[event.rank].memory;
        const Nanos time = std::max(event.time, memory.any ? memory.time : event.time);
        if (memory.any && time > memory.time) commit(event.rank);
        memory.any = true;
        memory.time = time;
        memory.inUse += event.delta;
    }
}

void RunPanelBuilder::commit(std::size_t rank)
{
    auto& memory = m_rows[rank].memory;
    MemorySeries& series = m_panel->ranks[rank].activations;
    if (series.peak < memory.inUse) {
        series.peak = memory.inUse;
        series.peakTime = memory.time;
    }
    const MemoryPoint point{memory.time, memory.inUse};
    const std::int64_t interval = (memory.time - m_panel->origin) / m_interval;
    if (interval != memory.interval) {
        flush(rank);
        memory.interval = interval;
        memory.first = memory.least = memory.most = point;
    }
    if (point.inUse < memory.least.inUse) memory.least = point;
    if (point.inUse > memory.most.inUse) memory.most = point;
    memory.last = point;
}

void RunPanelBuilder::flush(std::size_t rank)
{
    auto& memory = m_rows[rank].memory;
    if (memory.interval < 0) return;
    std::array<MemoryPoint, 4> points{memory.first, memory.least, memory.most, memory.last};
    std::stable_sort(points.begin(), points.end(),
                     [](const MemoryPoint& a, const MemoryPoint& b) { return a.time < b.time; });
    auto& all = m_panel->ranks[rank].activations.points;
    for (const MemoryPoint& point : points)
        if (all.empty() || all.back().time != point.time) all.push_back(point);
    memory.interval = -1;
}

std::shared_ptr<const TimelinePanel> RunPanelBuilder::build()
{
    for (auto& [track, work] : m_work) { // tracks come sorted by rank, lane and name
        PanelRank& rank = m_panel->ranks[static_cast<std::size_t>(work.rank)];
        const bool transfer = isMessageLane(work.lane);
        for (LaneData& lane : work.lanes) {
            lane.buildPyramid();
            if (work.lane != Lane::Wait) m_panel->sliceCount += static_cast<std::int64_t>(lane.size());
            if (transfer)
                rank.communication.push_back(std::move(lane));
            else
                rank.lanes.push_back({work.lane, std::move(lane), work.track, {}});
        }
    }
    double busy = 0;
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        PanelRank& rank = m_panel->ranks[i];
        std::stable_sort(rank.lanes.begin(), rank.lanes.end(), [](const PanelLane& a, const PanelLane& b) {
            return traitsOf(a.lane).place < traitsOf(b.lane).place;
        });
        rank.compute.buildPyramid();
        if (m_panel->noOps) {
            fillDevice(rank, m_panel->duration);
            rank.device.buildPyramid();
        }
        rank.subtitle = rank.gpus.empty() ? stagesText(m_rows[i].stages) : gpusText(rank);
        Nanos rankBusy = 0;
        for (const Slice& slice : rank.compute.slices()) {
            if (isBusy(slice.opKind())) rankBusy += slice.end() - slice.begin();
            m_panel->hasPairs = m_panel->hasPairs || slice.upper != 0;
        }
        busy += static_cast<double>(rankBusy);
        rank.busyFraction =
            m_panel->duration > 0 ? static_cast<double>(rankBusy) / static_cast<double>(m_panel->duration) : 0;
        m_panel->sliceCount += static_cast<std::int64_t>(rank.compute.size());
        if (m_rows[i].memory.any) {
            commit(i);
            flush(i);
        }
        m_panel->peak = std::max(m_panel->peak, rank.activations.peak);
    }
    setBubbleFraction(*m_panel, busy);
    return m_panel;
}

Lane overviewLane(const RunFile::Content& content)
{
    for (std::size_t i = 0; i < content.tracks.size(); ++i)
        if (content.tracks[i].lane == Lane::Compute && content.spanCount[i] > 0) return Lane::Compute;
    return Lane::Kernel;
}

int overviewBuckets(const RunFile::Content& content, std::int64_t ofAllRanks)
{
    std::int64_t spans = 0, tracks = 0;
    for (std::size_t i = 0; i < content.tracks.size(); ++i) {
        if (content.tracks[i].lane != overviewLane(content)) continue;
        spans += content.spanCount[i];
        ++tracks;
    }
    return static_cast<int>(
        std::clamp<std::int64_t>(spans / std::max<std::int64_t>(1, tracks) / 64, 16,
                                 std::max<std::int64_t>(1024, ofAllRanks / std::max<std::int64_t>(1, tracks) / 8)));
}

namespace {

// Without ops: how busy the fullest stream of each device is, in one colour, as classes are not stored. The share of
// time in which any stream is busy follows only where there is one stream.
void overviewOfDevices(TimelinePanel& panel, const RunFile::Overview& overview, int shift, double late)
{
    std::vector<std::vector<PaintBucket>> byRank(panel.ranks.size());
    std::vector<int> streams(panel.ranks.size(), 0);
    for (std::size_t track = 0; track < overview.tracks.size() && track < overview.busyByTrack.size(); ++track) {
        const Track& t = overview.tracks[track];
        if (t.lane != Lane::Kernel || t.rank < 0 || t.rank >= static_cast<int>(panel.ranks.size())) continue;
        const auto rank = static_cast<std::size_t>(t.rank);
        const auto& busy = overview.busyByTrack[track];
        auto& buckets = byRank[rank];
        buckets.resize(busy.size());
        double sum = 0;
        for (std::size_t i = 0; i < busy.size(); ++i) {
            const double share = static_cast<double>(busy[i]) * (1 - late) +
                                 (i + 1 < busy.size() ? static_cast<double>(busy[i + 1]) * late : 0);
            sum += share;
            if (share <= 0) continue;
            buckets[i].share[3] = std::max(buckets[i].share[3],
                                           static_cast<std::uint8_t>(std::clamp(std::lround(share * 255), 1L, 255L)));
            buckets[i].mask = static_cast<std::uint8_t>(1u << static_cast<unsigned>(Paint::Other));
        }
        PanelRank& row = panel.ranks[rank];
        row.deviceBusy = ++streams[rank] == 1 && panel.duration > 0
                             ? std::optional(std::min(1.0, sum * static_cast<double>(overview.bucketWidth) /
                                                               static_cast<double>(panel.duration)))
                             : std::nullopt;
    }
    for (std::size_t rank = 0; rank < byRank.size(); ++rank) {
        if (byRank[rank].empty()) continue;
        panel.ranks[rank].device.setLook(LaneLook::Classes);
        panel.ranks[rank].device.setOverview(shift, std::move(byRank[rank]));
    }
}

} // namespace

std::shared_ptr<const TimelinePanel> overviewPanel(const RunFile::Content& content,
                                                   const std::vector<RunFile::StepBounds>& steps,
                                                   const RunFile::Overview& overview, const QString& name)
{
    auto panel = bare(content, steps, name);
    panel->overview = true;
    panel->sliceCount = content.info.spanCount;
    constexpr auto& paints = RunFile::Overview::works;
    int shift = 0;
    while ((Nanos{1} << shift) < overview.bucketWidth) ++shift;
    // The stored grid starts at time 0, the axis at the start of the run: each bucket combines parts of two.
    const double late = static_cast<double>(content.begin - overview.begin) /
                        static_cast<double>(std::max<Nanos>(1, overview.bucketWidth));
    if (panel->noOps) {
        overviewOfDevices(*panel, overview, shift, late);
        return panel;
    }
    double busy = 0;
    for (std::size_t track = 0; track < overview.tracks.size() && track < overview.sharesByTrack.size(); ++track) {
        const Track& t = overview.tracks[track];
        if (t.lane != Lane::Compute || t.rank < 0 || t.rank >= static_cast<int>(panel->ranks.size())) continue;
        const auto& shares = overview.sharesByTrack[track];
        std::vector<PaintBucket> buckets(shares.size());
        double sum = 0;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            for (std::size_t work = 0; work < 4; ++work) {
                const double next = i + 1 < shares.size() ? shares[i + 1][work] : 0;
                const double share = shares[i][work] * (1 - late) + next * late;
                if (share <= 0) continue;
                buckets[i].share[work] = static_cast<std::uint8_t>(std::clamp(std::lround(share), 1L, 255L));
                buckets[i].mask =
                    static_cast<std::uint8_t>(buckets[i].mask | (1u << static_cast<unsigned>(paints[work])));
                panel->kinds |= 1u << static_cast<unsigned>(firstOf(paints[work]));
                sum += share / 255;
            }
        }
        PanelRank& rank = panel->ranks[static_cast<std::size_t>(t.rank)];
        rank.compute.setOverview(shift, std::move(buckets));
        rank.subtitle = stagesText(stagesOf(content, t.rank));
        const double rankBusy = sum * static_cast<double>(overview.bucketWidth);
        busy += rankBusy;
        rank.busyFraction = panel->duration > 0 ? std::min(1.0, rankBusy / static_cast<double>(panel->duration)) : 0;
    }
    setBubbleFraction(*panel, busy);
    return panel;
}

namespace {

// Which span of the step each slice of the window is. spans: of a track, sorted by start.
void giveIds(LaneData& lane, std::span<const Span> spans, SpanId firstId, Nanos origin)
{
    if (spans.empty() || lane.size() == 0) return;
    Nanos end = spans.front().end;
    for (const Span& span : spans) end = std::max(end, span.end);
    const std::size_t first = lane.firstBeginningAt(std::max<Nanos>(0, spans.front().start - origin));
    const std::size_t last = lane.firstBeginningAt(end - origin + 1);
    if (last <= first) return;
    std::vector<SpanId> ids(last - first, noSpan);
    std::size_t hint = 0;
    for (std::size_t i = first; i < last; ++i) {
        const Slice& slice = lane.slices()[i];
        const Nanos start = lane.drawn(i).begin + origin;
        while (hint < spans.size() && spans[hint].start < start) ++hint;
        for (std::size_t j = hint; j < spans.size() && spans[j].start == start; ++j) {
            const bool foreign = spans[j].label != 0 && spans[j].op == Op{};
            const bool kind = lane.look() != LaneLook::Ops || spans[j].op.kind == slice.opKind() ||
                              (foreign && isDelay(slice.opKind()));
            if (!kind || (slice.microbatchOr(-1) != spans[j].op.microbatch && slice.microbatch != Slice::noMicrobatch))
                continue;
            ids[i - first] = firstId + static_cast<SpanId>(j);
            break;
        }
    }
    lane.setIds(first, std::move(ids));
}

} // namespace

std::shared_ptr<const TimelinePanel> withDetails(const TimelinePanel& lanes, const TimelinePanel& step)
{
    auto panel = std::make_shared<TimelinePanel>(lanes);
    panel->timeline = step.timeline;
    panel->detailStep = step.step;
    panel->critical = step.critical;
    panel->bubbles = step.bubbles;
    const Timeline& t = *panel->timeline;
    for (const Track& track : t.tracks()) {
        if (track.rank >= static_cast<int>(panel->ranks.size())) continue;
        PanelRank& rank = panel->ranks[static_cast<std::size_t>(track.rank)];
        const auto spans = t.spansOf(track);
        if (track.lane == Lane::Compute) {
            giveIds(rank.compute, spans, track.begin, panel->origin);
        } else if (isMessageLane(track.lane)) {
            for (LaneData& lane : rank.communication)
                if (lane.idsBegin() == lane.idsEnd()) giveIds(lane, spans, track.begin, panel->origin);
        } else {
            for (PanelLane& lane : rank.lanes)
                if (lane.lane == track.lane && lane.track == track.name && lane.data.idsBegin() == lane.data.idsEnd())
                    giveIds(lane.data, spans, track.begin, panel->origin);
        }
    }
    return panel;
}

} // namespace stagewright
