#include "widgets/search/search_model.h"

#include "schedules/model/kinds.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"

namespace stagewright {

void SearchModel::setHits(std::shared_ptr<const TimelinePanel> panel,
                          std::shared_ptr<const std::vector<SearchHit>> hits, std::vector<Note> notes)
{
    beginResetModel();
    m_panel = std::move(panel);
    m_hits = std::move(hits);
    m_notes = std::move(notes);
    endResetModel();
}

const SearchHit* SearchModel::hit(int row) const
{
    return row >= 0 && row < rowCount() ? &(*m_hits)[static_cast<std::size_t>(row)] : nullptr;
}

int SearchModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() || !m_hits ? 0 : static_cast<int>(m_hits->size());
}
int SearchModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant SearchModel::data(const QModelIndex& index, int role) const
{
    const SearchHit* found = index.isValid() ? hit(index.row()) : nullptr;
    if (found == nullptr) return {};
    if (role == Qt::TextAlignmentRole) {
        const bool figure = index.column() >= Rank && index.column() <= Duration;
        return QVariant::fromValue(Qt::Alignment(Qt::AlignVCenter | (figure ? Qt::AlignRight : Qt::AlignLeft)));
    }
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
    const Note* note = found->note >= 0 && found->note < static_cast<int>(m_notes.size())
                           ? &m_notes[static_cast<std::size_t>(found->note)]
                           : nullptr;
    if (index.column() == NoteText && note != nullptr)
        return role == Qt::ToolTipRole ? shownTip(QString::fromStdString(note->text)) : shownName(note->text);
    if (index.column() == NoteText) return {};
    if (found->span == noSpan) { // a note on a range
        if (note == nullptr) return {};
        if (index.column() == Op) return u"range"_s;
        if (index.column() == Rank) return note->rank < 0 ? u"all"_s : QString::number(note->rank);
        if (index.column() == Start) return durationText(note->begin, m_panel->units);
        if (index.column() == Duration) return durationText(note->end - note->begin, m_panel->units);
        return {};
    }
    const Timeline& timeline = *m_panel->timeline;
    const Span& span = timeline.spans()[found->span];
    switch (index.column()) {
    case Op: return QString::fromStdString(timeline.nameOf(span));
    case Rank: return timeline.trackOf(found->span).rank;
    case Stage: return span.label == 0 ? QVariant(span.op.stage) : QVariant();
    case Microbatch: return span.op.microbatch >= 0 ? QVariant(span.op.microbatch) : QVariant();
    case Start: return durationText(m_panel->toAxis(span.start), m_panel->units);
    case Duration: return durationText(span.duration(), m_panel->units);
    default: return {};
    }
}

QVariant SearchModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    const QString titles[] = {u"Op"_s, u"Rank"_s, u"Stage"_s, u"Microbatch"_s, u"Start"_s, u"Duration"_s, u"Note"_s};
    if (role == Qt::DisplayRole) return titles[section];
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(
            Qt::AlignVCenter | (section >= Rank && section <= Duration ? Qt::AlignRight : Qt::AlignLeft)));
    if (role == Qt::ToolTipRole && section == Start) return u"From the start of what is shown"_s;
    return {};
}

} // namespace stagewright
