#include "app/ui/runs/run_library.h"

#include <algorithm>
#include <utility>

#include <QDir>
#include <QFile>
#include <QFileInfo>

#include "app/ui/runs/run_lanes.h"
#include "app/ui/runs/run_writing.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"

namespace stagewright {
namespace {

constexpr std::size_t cacheRuns = 12;
constexpr std::size_t largeViews = 4;      // of a run read in parts
constexpr qint64 summarySpans = 2'000'000; // larger runs are summarised when they are shown

Result<std::shared_ptr<const Run>> readRun(const RunRef& ref, int firstStep = 0)
{
    STAGEWRIGHT_TRY(auto file, RunFile::open(ref.file.toStdString(), OpenMode::Read));
    STAGEWRIGHT_TRY(auto run, file->readSteps(ref.id, firstStep));
    return std::make_shared<const Run>(std::move(run));
}

struct ListedFile {
    std::vector<RunInfo> runs;
    QString remark;
};

Result<ListedFile> listRuns(const QString& path)
{
    STAGEWRIGHT_TRY(auto file, RunFile::open(path.toStdString(), OpenMode::Read));
    STAGEWRIGHT_TRY(auto runs, file->runs());
    QStringList remarks;
    if (!file->missing().empty()) remarks << shownName(file->missing());
    if (!file->ignored().empty())
        remarks << u"tables and indexes that Stagewright did not make are not read: %1"_s.arg(
            shownName(file->ignored()));
    return ListedFile{std::move(runs), remarks.isEmpty()
                                           ? QString()
                                           : shownName(QFileInfo(path).fileName()) + u": "_s + remarks.join(u"; "_s)};
}

Result<RunSummary> summaryOf(const Run& run)
{
    STAGEWRIGHT_TRY(auto bubbles, analyseBubbles(*run.timeline, run.representativeStep()));
    return RunSummary{bubbles.stepTime(), bubbles.bubbleFraction,
                      Units{run.timeline->timeUnit(), run.timeline->memoryUnit()}};
}

} // namespace

RunLibrary::RunLibrary(QObject* parent) : QObject(parent)
{
    m_pool.setMaxThreadCount(2);
    m_slowPool.setMaxThreadCount(1);
    m_slowPool.setThreadPriority(QThread::LowPriority);
}

RunLibrary::~RunLibrary()
{
    cancelEveryStep();
    if (m_stopExcerpt) m_stopExcerpt->request_stop();
    m_slowPool.clear();
    RunFile::endReading(true);
    m_pool.waitForDone();
    m_slowPool.waitForDone();
    RunFile::endReading(false);
}

QString RunLibrary::normalised(const QString& path)
{
    if (path.isEmpty() || path.startsWith("sim:"_L1)) return path;
    return QDir::cleanPath(QFileInfo(path).absoluteFilePath());
}

void RunLibrary::open(const QString& given)
{
    const QString path = normalised(given);
    if (!m_model.hasFile(path)) m_model.addFile(path);
    list(path);
}

QString RunLibrary::takeRemark(const QString& path)
{
    const auto found = m_remarks.find(path);
    return found == m_remarks.end() ? QString() : std::exchange(found->second, QString());
}

void RunLibrary::reload(const QString& path) { list(normalised(path)); }

void RunLibrary::refresh(const QString& given)
{
    const QString path = normalised(given);
    std::erase_if(m_cache, [&](const Cached& one) { return one.ref.file == path; });
    list(path);
}

// done(work()): `work` on the pool, `done` here; busy in between.
template <typename Work, typename Done>
void RunLibrary::inPool(Work work, Done done, QThreadPool* pool)
{
    setBusy(1);
    inBackground(
        this, std::move(work),
        [this, done = std::move(done)](auto result) mutable {
            setBusy(-1);
            done(std::move(result));
        },
        pool != nullptr ? pool : &m_pool);
}

// The same with a stop source of its own, which stops what had the place before; stopped, it is answered with an Error
// (Cancelled).
template <typename Work, typename Done>
void RunLibrary::inPoolUntilStopped(std::optional<std::stop_source>& place, decltype(Progress::report) report,
                                    Work work, Done done)
{
    if (place) place->request_stop();
    Progress progress;
    progress.stop = place.emplace().get_token();
    progress.report = std::move(report);
    setBusy(1);
    inBackground(
        this, [work = std::move(work), progress] { return work(progress); },
        [this, &place, token = progress.stop, done = std::move(done)](auto result) mutable {
            if (place && place->get_token() == token) place.reset();
            setBusy(-1);
            if (token.stop_requested()) return done(fail(ErrorCode::Cancelled, "reading was cancelled"));
            done(std::move(result));
        },
        &m_pool);
}

void RunLibrary::list(const QString& path)
{
    if (isSimulated(path)) return;
    inPool([path] { return listRuns(path); },
           [this, path](Result<ListedFile> found) {
               if (!found) {
                   m_model.setFailed(path, QString::fromStdString(found.error().message));
                   emit failed(path, found.error());
                   return;
               }
               m_remarks.try_emplace(path, found->remark);
               std::vector<RunInfo>& infos = found->runs;
               std::vector<RunRef> refs;
               for (const RunInfo& info : infos) {
                   const RunRef ref{path, info.id};
                   refs.push_back(ref);
                   Cached* known = cached(ref);
                   if (known != nullptr &&
                       (known->steps != info.steps || known->spans != info.spanCount || known->state != info.state))
                       std::erase_if(m_cache, [&](const Cached& one) { return one.ref == ref; });
               }
               m_model.setRuns(path, std::move(infos));
               summarise(refs);
               emit listed(path, refs);
           });
}

void RunLibrary::summarise(const std::vector<RunRef>& refs)
{
    for (const RunRef& ref : refs) {
        const RunInfo* info = m_model.info(ref);
        if (info == nullptr || info->spanCount > summarySpans || info->steps == 0) continue;
        if (info->state == RunState::Recording) continue; // once it is complete
        if (cached(ref) != nullptr || m_model.hasSummary(ref)) continue;
        inBackground(
            this,
            [ref]() -> Result<RunSummary> {
                STAGEWRIGHT_TRY(auto run, readRun(ref));
                return summaryOf(*run);
            },
            [this, ref](Result<RunSummary> summary) {
                if (summary) m_model.setSummary(ref, *summary);
            },
            &m_slowPool);
    }
}

void RunLibrary::close(const QString& given)
{
    const QString path = normalised(given);
    m_remarks.erase(path);
    m_model.removeFile(path);
    if (m_simulated.erase(path) > 0) emit simulatedChanged();
    std::erase_if(m_cache, [&](const Cached& one) { return one.ref.file == path; });
    if (m_lanesOf && m_lanesOf->ref.file == path) dropLanes();
}

RunRef RunLibrary::addSimulated(Run run) { return addTo(u"sim:"_s + u"Simulated"_s, std::move(run)); }

RunRef RunLibrary::addAside(Run run)
{
    const QString path = u"sim:"_s + u"Lesson"_s;
    m_model.setHidden(path, true);
    return addTo(path, std::move(run));
}

void RunLibrary::setAside(const QString& path) { m_model.setHidden(normalised(path), true); }

void RunLibrary::closeAside()
{
    for (const QString& path : m_model.files())
        if (m_model.isHidden(path)) close(path);
    m_model.showAll();
}

RunRef RunLibrary::addTo(const QString& path, Run run)
{
    auto& runs = m_simulated[path];
    const auto same =
        std::find_if(runs.begin(), runs.end(), [&](const auto& one) { return one->info.name == run.info.name; });
    run.info.id = same != runs.end() ? (*same)->info.id : static_cast<std::int64_t>(runs.size()) + 1;
    RunRef ref{path, run.info.id};
    auto shared = std::make_shared<const Run>(std::move(run));
    if (same != runs.end())
        *same = shared;
    else
        runs.push_back(shared);
    std::erase_if(m_cache, [&](const Cached& one) { return one.ref == ref; });
    std::vector<RunInfo> infos;
    for (const auto& one : runs) infos.push_back(one->info);
    m_model.setRuns(path, std::move(infos));
    emit simulatedChanged();
    if (shared->timeline && static_cast<qint64>(shared->timeline->spans().size()) <= summarySpans)
        inBackground(
            this, [shared] { return summaryOf(*shared); },
            [this, ref](const Result<RunSummary>& summary) {
                if (summary && m_model.info(ref) != nullptr) m_model.setSummary(ref, *summary);
            },
            &m_slowPool);
    return ref;
}

std::vector<std::pair<RunRef, std::shared_ptr<const Run>>> RunLibrary::simulatedRuns() const
{
    std::vector<std::pair<RunRef, std::shared_ptr<const Run>>> out;
    for (const auto& [path, runs] : m_simulated)
        for (const auto& run : m_model.isHidden(path) ? std::vector<std::shared_ptr<const Run>>() : runs)
            out.emplace_back(RunRef{path, run->info.id}, run);
    return out;
}

RunLibrary::Cached* RunLibrary::cached(const RunRef& ref)
{
    const auto found = std::find_if(m_cache.begin(), m_cache.end(), [&](const Cached& one) { return one.ref == ref; });
    return found == m_cache.end() ? nullptr : &*found;
}

std::shared_ptr<const Run> RunLibrary::cachedRun(const RunRef& ref) const
{
    const auto found = std::find_if(m_cache.begin(), m_cache.end(), [&](const Cached& one) { return one.ref == ref; });
    return found == m_cache.end() ? nullptr : found->run;
}

void RunLibrary::keep(const std::shared_ptr<const RunView>& view, int askedStep)
{
    Cached* known = cached(view->ref);
    if (known == nullptr || (known->run != view->run && !view->large)) {
        std::erase_if(m_cache, [&](const Cached& one) { return one.ref == view->ref; });
        const RunInfo& info = view->run->info;
        m_cache.insert(m_cache.begin(), {view->ref, info.spanCount, info.steps, info.state, view->run, {}, {}});
        known = &m_cache.front();
    }
    if (view->large && known->run != view->run) { // each step has its own spans: few are kept
        if (known->views.size() > largeViews) known->views.clear();
        known->run = view->run;
    }
    known->views[askedStep] = view;
    known->views[view->step] = view;
    if (m_cache.size() > cacheRuns) m_cache.pop_back();
    const BubbleReport& bubbles = view->figures->bubbles;
    if (view->step == view->median)
        m_model.setSummary(view->ref, {bubbles.stepTime(), bubbles.bubbleFraction, view->panel->units});
}

void RunLibrary::request(const RunRef& ref, int step, Answer answer)
{
    std::shared_ptr<const Run> run;
    if (Cached* known = cached(ref)) {
        const auto view = known->views.find(step);
        if (view != known->views.end()) {
            answer(view->second);
            return;
        }
        if (!known->large) run = known->run;
    }
    if (!run && isSimulated(ref.file)) {
        const auto runs = m_simulated.find(ref.file);
        if (runs != m_simulated.end())
            for (const auto& one : runs->second)
                if (one->info.id == ref.id) run = one;
    }
    if (!run && isLarge(ref)) {
        requestPart(ref, step, std::move(answer));
        return;
    }
    inPool(
        [ref, step, run, choices = m_choices]() -> Result<std::shared_ptr<const RunView>> {
            if (run) return makeRunView(ref, run, step, choices);
            STAGEWRIGHT_TRY(auto read, readRun(ref));
            return makeRunView(ref, read, step, choices);
        },
        [this, step, answer = std::move(answer)](Result<std::shared_ptr<const RunView>> view) {
            if (view) keep(*view, step);
            answer(std::move(view));
        });
}

void RunLibrary::requestSteps(const RunRef& ref, const ShownSteps& steps, Answer answer)
{
    request(ref, -1, [this, steps, answer = std::move(answer)](Result<std::shared_ptr<const RunView>> view) {
        if (!view) {
            answer(std::move(view));
            return;
        }
        inPool(
            [base = *view, steps, choices = m_choices]() -> Result<std::shared_ptr<const RunView>> {
                return overSteps(*base, steps, choices);
            },
            answer);
    });
}

bool RunLibrary::isLarge(const RunRef& ref) const
{
    const RunInfo* info = isSimulated(ref.file) ? nullptr : m_model.info(ref);
    return info != nullptr && info->spanCount > largeLimits().whole;
}

namespace {

struct LargeAnswer {
    std::shared_ptr<const LargeRun> large;
    std::shared_ptr<const RunView> view; // null: its steps are too large for details
};

Result<LargeAnswer> readPart(const RunRef& ref, std::shared_ptr<const LargeRun> large, int step,
                             const ViewChoices& choices)
{
    LargeAnswer out{std::move(large), nullptr};
    if (!out.large) {
        STAGEWRIGHT_TRY(out.large, openLargeRun(ref));
    }
    if (!out.large->detailed()) return out;
    STAGEWRIGHT_TRY(out.view, readStepView(*out.large, step, choices));
    return out;
}

} // namespace

// One step of a run that is read in parts; every step at once where a single one is too large for details.
void RunLibrary::requestPart(const RunRef& ref, int step, Answer answer)
{
    Cached* known = cached(ref);
    inPool([ref, step, large = known != nullptr ? known->large : nullptr,
            choices = m_choices] { return readPart(ref, large, step, choices); },
           [this, ref, step, answer = std::move(answer)](Result<LargeAnswer> part) mutable {
               if (!part) return answer(tl::unexpected(part.error()));
               if (!part->view) { // its overview
                   m_vast = part->large;
                   return requestEveryStep(ref, -1, {}, std::move(answer));
               }
               keep(part->view, step);
               if (Cached* kept = cached(ref)) kept->large = part->large;
               answer(part->view);
           });
}

void RunLibrary::requestEveryStep(const RunRef& ref, int detail,
                                  std::function<void(std::shared_ptr<const RunView>)> preview, Answer answer)
{
    cancelEveryStep();
    struct First {
        LargeAnswer part;
        std::shared_ptr<const RunView> overview; // null where the lanes are here already
    };
    Cached* known = cached(ref);
    std::shared_ptr<const RunView> view;
    if (known != nullptr)
        if (const auto found = known->views.find(detail); found != known->views.end()) view = found->second;
    const bool here = m_lanes && m_lanesOf && m_lanesOf->ref == ref && known != nullptr && known->large == m_lanesOf;
    if (!here) dropLanes();
    inPool(
        [ref, detail, here, view,
         large = known != nullptr && known->large ? known->large
                 : m_vast && m_vast->ref == ref   ? std::exchange(m_vast, nullptr)
                                                  : nullptr,
         choices = m_choices]() -> Result<First> {
            First first;
            if (view && large) {
                first.part = {large, view};
            } else {
                STAGEWRIGHT_TRY(first.part, readPart(ref, large, detail, choices));
            }
            if (here) return first;
            STAGEWRIGHT_TRY(first.overview, readOverviewView(*first.part.large, first.part.view, false));
            return first;
        },
        [this, ref, detail, preview = std::move(preview), answer = std::move(answer)](Result<First> first) mutable {
            if (!first) return answer(tl::unexpected(first.error()));
            if (first->part.view) {
                keep(first->part.view, detail);
                if (Cached* kept = cached(ref)) kept->large = first->part.large;
            }
            if (first->overview && preview) preview(first->overview);
            readEveryStep(first->part.large, first->part.view, first->overview, std::move(answer));
        });
}

void RunLibrary::readEveryStep(const std::shared_ptr<const LargeRun>& large,
                               const std::shared_ptr<const RunView>& detail, std::shared_ptr<const RunView> overview,
                               Answer answer)
{
    struct Read {
        std::shared_ptr<const RunLanes> lanes;
        std::shared_ptr<const RunView> view;
    };
    const auto lanes = m_lanesOf == large ? m_lanes : nullptr;
    cancelEveryStep();
    if (!large->keepsLanes() && !large->detailed()) { // the overview is all there is; excerpts come as one zooms in
        m_lanesOf = large;
        m_lanes.reset();
        return answer(std::move(overview));
    }
    inPoolUntilStopped(
        m_stopLanes, reporter(),
        [large, detail, lanes, byClass = m_choices.kernelsByClass](const Progress& progress) -> Result<Read> {
            Read read{lanes, nullptr};
            if (!read.lanes) {
                STAGEWRIGHT_TRY(auto all, readLanes(*large, byClass, progress));
                read.lanes = std::make_shared<const RunLanes>(std::move(all));
            }
            read.view = everyStepView(*large, *read.lanes, detail);
            return read;
        },
        [this, large, answer = std::move(answer)](Result<Read> read) {
            if (!read) return answer(tl::unexpected(read.error()));
            m_lanesOf = large;
            m_lanes = read->lanes;
            answer(read->view);
        });
}

void RunLibrary::requestFineOverview(const RunRef& ref, Answer answer)
{
    const auto large = vastRun(ref);
    if (!large || large->keepsLanes()) return;
    inPool([large] { return readOverviewView(*large, nullptr, true); }, std::move(answer), &m_slowPool);
}

std::shared_ptr<const LargeRun> RunLibrary::vastRun(const RunRef& ref) const
{
    return m_lanesOf && m_lanesOf->ref == ref && !m_lanesOf->detailed() ? m_lanesOf : nullptr;
}

void RunLibrary::requestExcerpt(const RunRef& ref, std::shared_ptr<const TimelinePanel> base, Nanos begin, Nanos end,
                                Answer answer)
{
    if (m_stopExcerpt) m_stopExcerpt->request_stop();
    const auto large = vastRun(ref);
    if (!large) return answer(fail(ErrorCode::Cancelled, "another run is shown"));
    inPoolUntilStopped(
        m_stopExcerpt, {},
        [large, base = std::move(base), begin, end, choices = m_choices](const Progress& progress) {
            return readExcerptView(*large, *base, begin, end, choices, progress);
        },
        std::move(answer));
}

void RunLibrary::requestMatch(const RunRef& ref, const OpQuery& query, int from, bool backward,
                              std::function<void(Result<int>)> answer)
{
    cancelEveryStep();
    if (!m_lanesOf || !(m_lanesOf->ref == ref)) return answer(-1);
    inPoolUntilStopped(
        m_stopLanes, reporter(),
        [large = m_lanesOf, query, from, backward](const Progress& progress) {
            return findStep(*large, query, from, backward, progress);
        },
        std::move(answer));
}

// Reported from a worker now and then.
std::function<void(std::string_view, std::int64_t, std::int64_t)> RunLibrary::reporter()
{
    return [this, shown = std::int64_t{0}](std::string_view, std::int64_t done, std::int64_t total) mutable {
        if (done - shown < 100'000) return;
        shown = done;
        onGuiThread(this, [this, done, total] { emit lanesProgress(done, total); });
    };
}

void RunLibrary::cancelEveryStep()
{
    if (m_stopLanes) m_stopLanes->request_stop();
    m_stopLanes.reset();
}

void RunLibrary::dropLanes()
{
    m_lanesOf.reset();
    if (m_lanes) releaseInBackground(std::move(m_lanes), &m_slowPool);
    m_lanes.reset();
}

void RunLibrary::requestNewest(const RunRef& ref, int step, Answer answer)
{
    inPool(
        [ref, step, choices = m_choices]() -> Result<std::shared_ptr<const RunView>> {
            STAGEWRIGHT_TRY(auto read, readRun(ref, step));
            auto view = makeRunView(ref, read, step, choices);
            if (!view) return view;
            auto part = std::make_shared<RunView>(**view);
            part->partial = step > 0;
            return std::shared_ptr<const RunView>(std::move(part));
        },
        std::move(answer));
}

void RunLibrary::setBudget(const MemoryBudget& budget)
{
    if (budget == m_choices.budget) return;
    m_choices.budget = budget;
    for (Cached& one : m_cache) one.views.clear();
}

void RunLibrary::setKernelsByClass(bool byClass)
{
    if (byClass == m_choices.kernelsByClass) return;
    m_choices.kernelsByClass = byClass;
    for (Cached& one : m_cache) one.views.clear();
    cancelEveryStep();
    dropLanes();
}

void RunLibrary::saveCopy(const QString& path, const QString& target, std::function<void(Result<void>)> answer)
{
    std::vector<std::shared_ptr<const Run>> runs;
    if (const auto found = m_simulated.find(path); found != m_simulated.end()) runs = found->second;
    std::vector<std::vector<Note>> notes;
    notes.reserve(runs.size());
    for (const auto& run : runs) notes.push_back(m_notes ? m_notes({path, run->info.id}) : std::vector<Note>{});
    inPool([path, target, runs,
            notes]() -> Result<void> { return runs.empty() ? copyRuns(path, target) : writeRuns(target, runs, notes); },
           [this, target, answer = std::move(answer)](Result<void> done) {
               emit wrote(target);
               answer(std::move(done));
           });
}

void RunLibrary::adopt(const QString& path, const QString& other,
                       std::function<void(Result<std::vector<qint64>>)> answer)
{
    inPool([path, other] { return adoptRuns(path, other); },
           [this, path, answer = std::move(answer)](Result<std::vector<qint64>> ids) {
               emit wrote(path);
               answer(std::move(ids));
           });
}

template <typename Change>
void RunLibrary::change(const RunRef& ref, Change apply)
{
    if (isSimulated(ref.file)) return;
    inPool(
        [ref, apply]() -> Result<void> {
            STAGEWRIGHT_TRY(auto file, RunFile::open(ref.file.toStdString(), OpenMode::Write));
            return apply(*file);
        },
        [this, ref](Result<void> done) {
            if (!done) emit failed(ref.file, done.error());
            std::erase_if(m_cache, [&](const Cached& one) { return one.ref == ref; });
            emit wrote(ref.file);
            list(ref.file);
        });
}

// In memory runs are known by their names, so one that is taken gets a number. False: nothing changed.
static bool renameAmong(std::vector<std::shared_ptr<const Run>>& runs, qint64 id, const std::string& wanted)
{
    const auto at = std::find_if(runs.begin(), runs.end(), [&](const auto& run) { return run->info.id == id; });
    if (at == runs.end() || (*at)->info.name == wanted) return false;
    std::string name = wanted;
    for (int number = 2; std::any_of(runs.begin(), runs.end(), [&](const auto& run) { return run->info.name == name; });
         ++number)
        name = wanted + " (" + std::to_string(number) + ")";
    auto renamed = std::make_shared<Run>(**at);
    renamed->info.name = name;
    *at = std::move(renamed);
    return true;
}

void RunLibrary::rename(const RunRef& ref, const QString& name)
{
    if (const auto found = m_simulated.find(ref.file); found != m_simulated.end()) {
        if (!renameAmong(found->second, ref.id, name.toStdString())) return;
        std::erase_if(m_cache, [&](const Cached& one) { return one.ref == ref; });
        std::vector<RunInfo> infos;
        for (const auto& one : found->second) infos.push_back(one->info);
        m_model.setRuns(ref.file, std::move(infos));
        emit simulatedChanged();
        return;
    }
    change(ref, [id = ref.id, text = name.toStdString()](RunFile& file) { return file.rename(id, text); });
}

void RunLibrary::remove(const RunRef& ref)
{
    change(ref, [id = ref.id](RunFile& file) { return file.remove(id); });
}

void RunLibrary::setBusy(int change)
{
    m_reading += change;
    emit busyChanged();
}

} // namespace stagewright
