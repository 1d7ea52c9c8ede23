#include "widgets/runs/runs_model.h"

#include <algorithm>
#include <iterator>

#include <QFileInfo>

#include "schedules/library/registry.h"
#include "traces/report/run_report.h"
#include "traces/run/run_facts.h"
#include "traces/store/run_names.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"

namespace stagewright {

QString clockText(const std::string& clock)
{
    if (clock == "virtual") return u"virtual clock"_s;
    if (clock == "wall") return u"wall clock"_s;
    if (clock == "model") return u"model"_s;
    return shownName(clock);
}

QString provenanceText(const RunInfo& info)
{
    if (info.clock == "virtual")
        return countText(info.ranks, u"virtual clock: projected for 1 device"_s,
                         u"virtual clock: projected for %L1 devices"_s);
    if (info.clock == "wall")
        return countText(info.ranks, u"wall clock: measured on 1 rank"_s, u"wall clock: measured on %L1 ranks"_s);
    if (info.provenance == Provenance::Simulated) return u"simulated with a cost model"_s;
    const auto origin = toText(info.provenance);
    const QString words = QString::fromUtf8(origin.data(), static_cast<qsizetype>(origin.size()));
    return info.clock.empty() ? words : u"%1, clock %2"_s.arg(words, shownName(info.clock));
}

namespace {

QString clockProvenance(const Run& run)
{
    const DeviceShare share = deviceShareOf(run);
    const int ranks = run.info.ranks;
    if (share.how == DeviceShare::How::Interleaved)
        return u"wall clock: %1 interleaved on %2, ops slow each other down"_s.arg(
            countText(ranks, u"1 rank"_s, u"%L1 ranks"_s), countText(share.devices, u"1 GPU"_s, u"%L1 GPUs"_s));
    if (share.how == DeviceShare::How::Partitions)
        return u"wall clock: each rank on a part of a GPU, slower than a whole one, memory bandwidth shared"_s;
    return provenanceText(run.info);
}

} // namespace

QString placeText(const Run& run) { return shownName(trainedBy(run)); }

QString provenanceText(const Run& run)
{
    const QString place = placeText(run);
    return place.isEmpty() ? clockProvenance(run) : u"%1; %2"_s.arg(clockProvenance(run), place);
}

QString stateText(RunState state)
{
    switch (state) {
    case RunState::Recording: return u"recording"_s;
    case RunState::Complete: return u"complete"_s;
    case RunState::Interrupted: return u"interrupted"_s;
    case RunState::Receiving: return u"receiving"_s;
    }
    return {};
}

QString scheduleTitle(const std::string& name) { return qtText(shownTitle(name)); }

QString runTitle(const RunInfo& info)
{
    if (info.name.empty() || info.name == info.scheduleName) return scheduleTitle(info.scheduleName);
    const std::string_view plain = unnumberedName(info.name);
    if (plain == info.scheduleName) return scheduleTitle(info.scheduleName) + shownName(info.name.substr(plain.size()));
    return shownName(info.name);
}

int RunsModel::columnCount(const QModelIndex&) const { return ColumnCount; }

int RunsModel::rowCount(const QModelIndex& parent) const
{
    if (!parent.isValid()) return static_cast<int>(m_files.size());
    if (parent.internalPointer() != nullptr || parent.column() != 0) return 0;
    return static_cast<int>(m_files[static_cast<std::size_t>(parent.row())]->runs.size());
}

QModelIndex RunsModel::index(int row, int column, const QModelIndex& parent) const
{
    if (row < 0 || column < 0 || column >= ColumnCount || row >= rowCount(parent)) return {};
    if (!parent.isValid()) return createIndex(row, column, nullptr);
    return createIndex(row, column, m_files[static_cast<std::size_t>(parent.row())].get());
}

QModelIndex RunsModel::parent(const QModelIndex& child) const
{
    if (!child.isValid() || child.internalPointer() == nullptr) return {};
    const auto* file = static_cast<const File*>(child.internalPointer());
    for (std::size_t row = 0; row < m_files.size(); ++row)
        if (m_files[row].get() == file) return createIndex(static_cast<int>(row), 0, nullptr);
    return {};
}

Qt::ItemFlags RunsModel::flags(const QModelIndex& index) const
{
    if (!index.isValid()) return Qt::NoItemFlags;
    return index.internalPointer() == nullptr ? Qt::ItemIsEnabled
                                              : Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren;
}

QVariant RunsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    switch (section) {
    case Name: return u"Name"_s;
    case State: return u"State"_s;
    case Schedule: return u"Schedule"_s;
    case Clock: return u"Clock"_s;
    case Time: return u"Time"_s;
    case Bubble: return u"Bubble"_s;
    default: return {};
    }
}

QVariant RunsModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid()) return {};
    if (index.internalPointer() == nullptr)
        return fileData(*m_files[static_cast<std::size_t>(index.row())], index.column(), role);
    const auto* file = static_cast<const File*>(index.internalPointer());
    return runData(*file, file->runs[static_cast<std::size_t>(index.row())], index.column(), role);
}

QVariant RunsModel::fileData(const File& file, int column, int role) const
{
    const bool simulated = file.path.startsWith("sim:"_L1);
    switch (role) {
    case Qt::DisplayRole:
        if (column == Name) return shownName(simulated ? file.path.mid(4) : QFileInfo(file.path).fileName());
        if (column == State && file.state == FileState::Reading) return u"reading…"_s;
        if (column == State && file.state == FileState::Failed) return u"unreadable"_s;
        return {};
    case Qt::ToolTipRole:
        if (file.state == FileState::Failed) return shownTip(file.error);
        return simulated ? u"Simulated; not in a file yet. Save to keep it."_s : shownTip(file.path);
    case DetailRole:
        if (file.state == FileState::Reading) return u"reading…"_s;
        if (file.state == FileState::Failed) return u"unreadable"_s;
        return countText(static_cast<qint64>(file.runs.size()), u"1 run"_s, u"%L1 runs"_s);
    case RefFileRole: return file.path;
    case IsFileRole: return true;
    case ErrorRole: return file.error;
    case HiddenRole: return isHidden(file.path);
    default: return {};
    }
}

// A run whose ops are not known has neither a step time nor a bubble ratio.
static QString timeText(const RunInfo& info, const RunSummary& summary)
{
    return info.stages == 0 ? u"–"_s : durationText(summary.makespan, summary.units);
}
static QString bubbleText(const RunInfo& info, const RunSummary& summary)
{
    return info.stages == 0 ? u"–"_s : percentText(summary.bubbleFraction);
}

QVariant RunsModel::runData(const File& file, const Item& item, int column, int role) const
{
    const RunInfo& info = item.info;
    const RunRef ref{file.path, info.id};
    switch (role) {
    case Qt::DisplayRole:
        switch (column) {
        case Name: return runTitle(info);
        case State: return stateText(info.state);
        case Schedule: return scheduleTitle(info.scheduleName);
        case Clock: return clockText(info.clock);
        case Time: return item.summary ? timeText(info, *item.summary) : u"…"_s;
        case Bubble: return item.summary ? bubbleText(info, *item.summary) : u"…"_s;
        default: return {};
        }
    case Qt::TextAlignmentRole:
        return column == Time || column == Bubble ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant();
    case Qt::ToolTipRole: {
        QString text =
            u"%1, run %2: %3, %4, %5\n%6, %7 of them warm-up, %8\n%9"_s.arg(runTitle(info))
                .arg(info.id)
                .arg(countText(info.ranks, u"1 rank"_s, u"%L1 ranks"_s),
                     countText(info.stages, u"1 stage"_s, u"%L1 stages"_s),
                     countText(info.microbatches, u"1 microbatch"_s, u"%L1 microbatches"_s),
                     countText(info.steps, u"1 step"_s, u"%L1 steps"_s))
                .arg(info.warmupSteps)
                .arg(countText(static_cast<qint64>(info.spanCount), u"1 span"_s, u"%L1 spans"_s), provenanceText(info));
        if (!info.note.empty()) text += u'\n' + QString::fromStdString(info.note);
        return shownTip(text);
    }
    case DetailRole: {
        const QString shape = info.stages == 0 ? countText(info.ranks, u"1 rank"_s, u"%L1 ranks"_s)
                                               : u"%1 × %2"_s.arg(info.ranks).arg(info.microbatches);
        QString text = u"%1 · %2"_s.arg(shape, clockText(info.clock));
        if (info.state != RunState::Complete) text += u" · "_s + stateText(info.state);
        return text;
    }
    case FigureRole:
        return item.summary ? timeText(info, *item.summary) + u'\n' + bubbleText(info, *item.summary) : QString();
    case MarkRole:
        for (std::size_t i = 0; i < m_marks.size(); ++i)
            if (ref == m_marks[i]) return QString(QChar(static_cast<char16_t>(u'A' + i)));
        return {};
    case RefFileRole: return file.path;
    case RefIdRole: return ref.id;
    case IsFileRole: return false;
    default: return {};
    }
}

int RunsModel::fileRow(const QString& path) const
{
    for (std::size_t row = 0; row < m_files.size(); ++row)
        if (m_files[row]->path == path) return static_cast<int>(row);
    return -1;
}

void RunsModel::addFile(const QString& path, FileState state)
{
    const int row = fileRow(path);
    if (row >= 0) {
        m_files[static_cast<std::size_t>(row)]->state = state;
        emit dataChanged(index(row, 0), index(row, ColumnCount - 1));
        return;
    }
    const int at = static_cast<int>(m_files.size());
    beginInsertRows({}, at, at);
    m_files.push_back(std::make_unique<File>());
    m_files.back()->path = path;
    m_files.back()->state = state;
    endInsertRows();
}

void RunsModel::setRuns(const QString& path, std::vector<RunInfo> runs)
{
    addFile(path, FileState::Ready);
    const int row = fileRow(path);
    File& file = *m_files[static_cast<std::size_t>(row)];
    const QModelIndex parent = index(row, 0);
    file.error.clear();
    // Removes runs that are gone, updates the others in place, appends new ones: a view keeps its selection. Rows side
    // by side go and come together: a view looks at all of its rows each time.
    QHash<qint64, std::size_t> wanted;
    for (std::size_t i = 0; i < runs.size(); ++i) wanted.insert(runs[i].id, i);
    for (std::size_t end = file.runs.size(); end > 0;) {
        if (wanted.contains(file.runs[end - 1].info.id)) {
            --end;
            continue;
        }
        std::size_t begin = end - 1;
        while (begin > 0 && !wanted.contains(file.runs[begin - 1].info.id)) --begin;
        beginRemoveRows(parent, static_cast<int>(begin), static_cast<int>(end) - 1);
        file.runs.erase(file.runs.begin() + static_cast<std::ptrdiff_t>(begin),
                        file.runs.begin() + static_cast<std::ptrdiff_t>(end));
        numberRows(file);
        endRemoveRows();
        end = begin;
    }
    const int before = static_cast<int>(file.runs.size());
    std::vector<Item> added;
    for (RunInfo& info : runs) {
        const auto found = file.rowOf.constFind(info.id);
        if (found == file.rowOf.constEnd()) {
            added.push_back({std::move(info), std::nullopt});
            continue;
        }
        Item& item = file.runs[static_cast<std::size_t>(*found)];
        if (item.info.steps != info.steps || item.info.spanCount != info.spanCount || item.info.state != info.state)
            item.summary.reset();
        item.info = std::move(info);
    }
    if (before > 0) emit dataChanged(index(0, 0, parent), index(before - 1, ColumnCount - 1, parent));
    if (!added.empty()) {
        beginInsertRows(parent, before, before + static_cast<int>(added.size()) - 1);
        std::move(added.begin(), added.end(), std::back_inserter(file.runs));
        numberRows(file);
        endInsertRows();
    }
    emit dataChanged(index(row, 0), index(row, ColumnCount - 1));
}

void RunsModel::numberRows(File& file)
{
    file.rowOf.clear();
    file.rowOf.reserve(static_cast<qsizetype>(file.runs.size()));
    // the first of equal ones
    for (std::size_t i = file.runs.size(); i-- > 0;) file.rowOf.insert(file.runs[i].info.id, static_cast<int>(i));
}

RunsModel::Item* RunsModel::itemOf(const RunRef& ref) const
{
    const int row = fileRow(ref.file);
    if (row < 0) return nullptr;
    File& file = *m_files[static_cast<std::size_t>(row)];
    const auto found = file.rowOf.constFind(ref.id);
    return found == file.rowOf.constEnd() ? nullptr : &file.runs[static_cast<std::size_t>(*found)];
}

void RunsModel::setFailed(const QString& path, const QString& message)
{
    addFile(path, FileState::Failed);
    const int row = fileRow(path);
    m_files[static_cast<std::size_t>(row)]->error = message;
    emit dataChanged(index(row, 0), index(row, ColumnCount - 1));
}

void RunsModel::removeFile(const QString& path)
{
    const int row = fileRow(path);
    if (row < 0) return;
    beginRemoveRows({}, row, row);
    m_files.erase(m_files.begin() + row);
    endRemoveRows();
}

void RunsModel::setSummary(const RunRef& ref, const RunSummary& summary)
{
    const QModelIndex at = indexOf(ref);
    if (!at.isValid()) return;
    auto* file = m_files[static_cast<std::size_t>(at.parent().row())].get();
    file->runs[static_cast<std::size_t>(at.row())].summary = summary;
    emit dataChanged(at, at.siblingAtColumn(ColumnCount - 1));
}

void RunsModel::setHidden(const QString& path, bool hidden)
{
    m_hidden.removeAll(path);
    if (hidden) m_hidden << path;
}

bool RunsModel::hasSummary(const RunRef& ref) const
{
    const Item* item = itemOf(ref);
    return item != nullptr && item->summary.has_value();
}

void RunsModel::setMarks(std::vector<RunRef> refs)
{
    std::vector<RunRef> touched = refs;
    touched.insert(touched.end(), m_marks.begin(), m_marks.end());
    m_marks = std::move(refs);
    for (const RunRef& ref : touched) {
        const QModelIndex at = indexOf(ref);
        if (at.isValid()) emit dataChanged(at, at.siblingAtColumn(ColumnCount - 1), {MarkRole});
    }
}

QStringList RunsModel::files() const
{
    QStringList paths;
    for (const auto& file : m_files) paths << file->path;
    return paths;
}

const RunInfo* RunsModel::info(const RunRef& ref) const
{
    const Item* item = ref.valid() ? itemOf(ref) : nullptr;
    return item != nullptr ? &item->info : nullptr;
}

std::vector<RunRef> RunsModel::refs() const
{
    std::vector<RunRef> refs;
    for (const auto& file : m_files)
        for (const Item& item : file->runs) refs.push_back({file->path, item.info.id});
    return refs;
}

qsizetype RunsModel::runCount() const
{
    qsizetype count = 0;
    for (const auto& file : m_files) count += static_cast<qsizetype>(file->runs.size());
    return count;
}

RunRef RunsModel::refAt(const QModelIndex& index) const
{
    if (!index.isValid() || index.internalPointer() == nullptr) return {};
    const auto* file = static_cast<const File*>(index.internalPointer());
    return {file->path, file->runs[static_cast<std::size_t>(index.row())].info.id};
}

QModelIndex RunsModel::indexOf(const RunRef& ref) const
{
    const int row = ref.valid() ? fileRow(ref.file) : -1;
    if (row < 0) return {};
    const int run = m_files[static_cast<std::size_t>(row)]->rowOf.value(ref.id, -1);
    return run < 0 ? QModelIndex() : index(run, 0, index(row, 0));
}

QModelIndex RunsModel::indexOfFile(const QString& path) const
{
    const int row = fileRow(path);
    return row < 0 ? QModelIndex() : index(row, 0);
}

} // namespace stagewright
