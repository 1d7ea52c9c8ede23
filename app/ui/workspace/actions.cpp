#include "app/ui/workspace/actions.h"

#include <algorithm>
#include <utility>

#include <QWidget>

#include "widgets/literals.h"

namespace stagewright {
namespace {

QString withoutMnemonic(QString text) { return text.remove(u'&'); }

} // namespace

MenuId menuOf(ActionGroup group)
{
    using G = ActionGroup;
    switch (group) {
    case G::FileOpen:
    case G::FileKeep:
    case G::FileWindow:
    case G::FileExport:
    case G::FileQuit: return MenuId::File;
    case G::EditUndo:
    case G::EditCopy:
    case G::EditFind:
    case G::EditNote:
    case G::EditPreferences: return MenuId::Edit;
    case G::ViewFit:
    case G::ViewTracks:
    case G::ViewPanels:
    case G::ViewLists:
    case G::ViewSteps: return MenuId::View;
    case G::Rows: return MenuId::Rows;
    case G::RowGroups: return MenuId::RowGroups;
    case G::Layouts: return MenuId::Layouts;
    case G::Bookmarks: return MenuId::Bookmarks;
    case G::Times: return MenuId::Times;
    case G::MemoryCharts: return MenuId::MemoryCharts;
    case G::Theme: return MenuId::Theme;
    case G::ScheduleRecord:
    case G::ScheduleEdit:
    case G::Order: return MenuId::Schedule;
    case G::Ops: return MenuId::Ops;
    case G::OpChoice: return MenuId::OpChoice;
    case G::AnalyseStep:
    case G::AnalyseGaps:
    case G::AnalyseTools:
    case G::AnalyseCompare:
    case G::AnalyseQuery:
    case G::AnalyseSteps: return MenuId::Analyse;
    case G::LearnLessons:
    case G::LearnPlay: return MenuId::Learn;
    case G::HelpKeys:
    case G::HelpAbout: break;
    }
    return MenuId::Help;
}

Actions::Actions(QWidget* window, std::vector<ActionEntry> entries) : QObject(window), m_window(window)
{
    std::stable_sort(entries.begin(), entries.end(), [](const ActionEntry& a, const ActionEntry& b) {
        return std::pair(a.group, a.at) < std::pair(b.group, b.at);
    });
    for (ActionEntry& entry : entries) {
        QAction* action = make(entry);
        m_places[entry.id] = m_all.size();
        m_all.push_back({std::move(entry), action});
    }
}

QAction* Actions::make(const ActionEntry& entry)
{
    auto* action = new QAction(entry.text, m_window);
    action->setObjectName(QString::fromLatin1(entry.id));
    action->setCheckable(entry.checkable);
    QList<QKeySequence> keys;
    for (const QString& key : entry.keys.split(u'|', Qt::SkipEmptyParts))
        keys << QKeySequence(key, QKeySequence::PortableText);
    action->setShortcuts(keys);
    QString tip = entry.tooltip.isEmpty() ? withoutMnemonic(entry.text) : entry.tooltip;
    action->setStatusTip(tip);
    if (!keys.isEmpty()) tip += u"  (%1)"_s.arg(keys.first().toString(QKeySequence::NativeText));
    action->setToolTip(tip);
    m_window->addAction(action);
    return action;
}

const Actions::Listed& Actions::listed(ActionId id) const
{
    const auto found = m_places.find(id);
    if (found == m_places.end()) qFatal("no feature declares the action %s", id.data());
    return m_all[found->second];
}

QAction* Actions::operator[](ActionId id) const { return listed(id).action; }

QString Actions::buttonText(ActionId id) const
{
    const ActionEntry& entry = listed(id).entry;
    return entry.button.isEmpty() ? withoutMnemonic(entry.text) : entry.button;
}

} // namespace stagewright
