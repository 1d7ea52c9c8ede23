// Actions: everything the window can do, declared in one table (actions.cpp): id, menu, text, keys, tooltip. Menus, toolbar, command
// palette and tests find actions here by id. A feature may add its own: then nothing else knows it.
#pragma once

#include <map>
#include <vector>

#include <QAction>
#include <QObject>
#include <QString>

namespace stagewright {

enum class ActionId {
    Open,
    OpenRecent,
    SaveCopy,
    CloseFile,
    NewWindow,
    MoveToWindow,
    ExportPicture,
    ExportReport,
    ExportRun,
    Quit,
    CopyTable,
    CopyMarkdown,
    Undo,
    Redo,
    EditMode,
    NewSchedule,
    BuildingBlock,
    InsertDelay,
    RunEdited,
    NewEmpty,
    CutOps,
    CopyOps,
    PasteOps,
    RemoveOps,
    SplitBackward,
    MergeBackward,
    InsertRecompute,
    SwapOps,
    FillGap,
    SnapOps,
    SnapAll,
    RankAbove,
    RankBelow,
    ExtendLeft,
    ExtendRight,
    ChooseAll,
    ChooseMicrobatch,
    ChooseRank,
    Microbatches,
    RevertOrder,
    GoThere,
    CarryThere,
    StrictMoves,
    CarryAlong,
    ScheduleText,
    GhostOriginal,
    GhostLibrary,
    Record,
    CancelRecording,
    CriticalPath,
    MemoryBudget,
    Slack,
    NextGap,
    PreviousGap,
    WhatIf,
    Residuals,
    LoweredView,
    DeviceTables,
    CommTracks,
    Memory,
    RunsList,
    Details,
    SidePanel,
    Fit,
    FitSelection,
    Back,
    Forward,
    Compare,
    SwapCompare,
    NextCompared,
    AlignAtOp,
    SetBaseline,
    Explorer,
    PreviousStep,
    NextStep,
    Lessons,
    OpenLesson,
    LeaveLesson,
    NextLessonStep,
    PreviousLessonStep,
    LessonHint,
    LessonPane,
    Glossary,
    ExplainTerm,
    Play,
    NextBeat,
    PreviousBeat,
    NextMoment,
    Pace1,
    Pace2,
    Pace3,
    Pace4,
    ReducedMotion,
    Find,
    FindNext,
    FindPrevious,
    SearchList,
    Palette,
    SqlConsole,
    Preferences,
    AddNote,
    KeepNote,
    RemoveNote,
    NotesList,
    BookmarkJump1,
    BookmarkJump2,
    BookmarkJump3,
    BookmarkJump4,
    BookmarkJump5,
    BookmarkJump6,
    BookmarkJump7,
    BookmarkJump8,
    BookmarkJump9,
    BookmarkSet1,
    BookmarkSet2,
    BookmarkSet3,
    BookmarkSet4,
    BookmarkSet5,
    BookmarkSet6,
    BookmarkSet7,
    BookmarkSet8,
    BookmarkSet9,
    SaveLayout,
    ResetLayout,
    RowUp,
    RowDown,
    PinRank,
    FoldRank,
    RankTrack,
    OpenGroup,
    GroupAuto,
    GroupNone,
    GroupOf8,
    GroupOf32,
    GroupOf128,
    GroupStage,
    GroupBusy,
    GroupHost,
    GroupPipeline,
    GroupData,
    GroupTensor,
    GroupExpert,
    GroupContext,
    GroupReplica,
    GroupRange,
    SubLanes,
    KernelClasses,
    WaitLanes,
    RowsTaller,
    RowsLower,
    RowsAutomatic,
    ResetRows,
    TimeRelative,
    TimeAbsolute,
    UnitAuto,
    UnitNanos,
    UnitMicros,
    UnitMillis,
    UnitSeconds,
    AllSteps,
    ChooseSteps,
    MemoryActivations,
    MemoryCommunication,
    MemoryWorkspace,
    MemoryGradients,
    MemoryWeights,
    MemoryOptimizer,
    MemoryGathered,
    MemoryBuckets,
    MemoryAll,
    MemoryOwnScale,
    MemoryPredicted,
    MemoryCounters,
    ThemeSystem,
    ThemeLight,
    ThemeDark,
    ThemeHighContrast,
    HatchKinds,
    KeysPerfetto,
    KeysNsight,
    KeysTracy,
    Keys,
    About,
    ImportTraces,
    ComparePlan,
    Own, // of a feature, found by its name
};

enum class MenuId {
    File,
    Edit,
    View,
    Rows,
    Times,
    MemoryCharts,
    Layouts,
    Bookmarks,
    Theme,
    Order,
    Schedule,
    Analyse,
    Learn,
    Help,
    Recent,
};

struct ActionEntry {
    ActionId id;
    MenuId menu;        // menus list their actions in the order of the table
    bool line;          // a separator before it
    const char* name;   // objectName
    const char* text;   // in menus, with mnemonic
    const char* button; // on the toolbar; empty: as `text` without mnemonic
    const char* keys;   // QKeySequence portable text, several separated by "|"; empty: none
    const char* tooltip;
    bool checkable;
};

class Actions : public QObject {
    Q_OBJECT
public:
    explicit Actions(QWidget* window); // adds every action to the window, so that its keys work
    static const std::vector<ActionEntry>& table();
    QAction* operator[](ActionId id) const { return m_actions.at(id); }
    static QString buttonText(ActionId id);
    // One that a feature declares itself (id: Own), behind `after` in its menu and in all().
    QAction* add(const ActionEntry& entry, ActionId after);
    struct Listed {
        ActionEntry entry;
        QAction* action;
    };
    const std::vector<Listed>& all() const { return m_all; } // in the order of the menus

private:
    QAction* make(const ActionEntry& entry);
    QWidget* m_window;
    std::map<ActionId, QAction*> m_actions;
    std::vector<Listed> m_all;
};

} // namespace stagewright
