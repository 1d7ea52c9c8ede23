// Actions: everything the window can do. Each feature declares its own in a table (Feature::actionTable); the shell
// makes them all before the first feature and lays out the menus from the fixed order of groups. Menus, toolbar,
// command palette, key page, other features and tests find actions here by id.
#pragma once

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <QAction>
#include <QObject>
#include <QString>

namespace stagewright {

using ActionId = std::string_view; // a literal, which is also the objectName: "criticalPath"

enum class MenuId {
    File,
    Edit,
    View,
    Rows,
    RowGroups,
    Times,
    MemoryCharts,
    Layouts,
    Bookmarks,
    Theme,
    Schedule,
    Ops,
    OpChoice,
    Analyse,
    Learn,
    Help,
    Recent,
};

// Where an action is: menus, palette and key page list the groups in this order, with a separator between those of one
// menu.
enum class ActionGroup {
    FileOpen,
    FileKeep,
    FileWindow,
    FileExport,
    FileQuit,
    EditUndo,
    EditCopy,
    EditFind,
    EditNote,
    EditPreferences,
    ViewFit,
    ViewTracks,
    ViewPanels,
    Rows,
    RowGroups,
    ViewLists,
    Layouts,
    Bookmarks,
    Times,
    MemoryCharts,
    Theme,
    ScheduleRecord,
    ScheduleEdit,
    Order,
    Ops,
    OpChoice,
    AnalyseStep,
    AnalyseGaps,
    AnalyseTools,
    AnalyseCompare,
    AnalyseQuery,
    ViewSteps,
    AnalyseSteps,
    LearnLessons,
    LearnPlay,
    HelpKeys,
    HelpAbout,
};

MenuId menuOf(ActionGroup group);

// What an action needs, from which follows why it is disabled.
enum class Needs {
    Nothing, // what is `missing` is all it takes
    Run,
    Reading, // a run that is not being edited
    Editing,
    TwoRuns,
};

struct ActionEntry { // {}: tables name some members, and the others need a value of their own
    ActionId id{};
    ActionGroup group{};
    int at = 1000;     // place in its group; equal ones in the order of features.def, then of the table
    bool line = false; // a separator before it, within its group
    QString text{};    // in menus, with mnemonic
    QString button{};  // on the toolbar; empty: as `text` without mnemonic
    QString keys{};    // QKeySequence portable text, several separated by "|"; empty: none
    int tool = 0;      // place on the toolbar, which has a gap between tens; 0: not there
    QString tooltip{}; // empty: as `text` without mnemonic
    bool checkable = false;
    Needs needs = Needs::Run;
    QString missing{}; // why it is disabled although what it needs is there; empty: it depends on what is shown
};

// A row of a table: what most actions say, then the rest by name.
inline ActionEntry item(ActionId id, ActionGroup group, QString text, QString keys = {}, QString tooltip = {},
                        ActionEntry rest = {})
{
    rest.id = id;
    rest.group = group;
    rest.text = std::move(text);
    rest.keys = std::move(keys);
    rest.tooltip = std::move(tooltip);
    return rest;
}

class Actions : public QObject {
    Q_OBJECT
public:
    // adds every action to the window, so that its keys work
    Actions(QWidget* window, std::vector<ActionEntry> entries);
    QAction* operator[](ActionId id) const; // ends the program if no feature declares it
    QString buttonText(ActionId id) const;
    struct Listed {
        ActionEntry entry;
        QAction* action;
    };
    const std::vector<Listed>& all() const { return m_all; } // in the order of the menus

private:
    const Listed& listed(ActionId id) const;
    QAction* make(const ActionEntry& entry);
    QWidget* m_window;
    std::vector<Listed> m_all;
    std::map<ActionId, std::size_t> m_places; // in m_all
};

} // namespace stagewright
