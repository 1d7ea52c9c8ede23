#include "app/ui/actions.h"

#include <QWidget>

namespace stagewright {

const std::vector<ActionEntry>& actionTable()
{
    using I = ActionId;
    using M = MenuId;
    static const std::vector<ActionEntry> table{
        {I::Open, M::File, false, "open", "&Open…", "Open…", "Ctrl+O", "Open run files (.stagewright) or schedules (.csv)", false},
        {I::OpenRecent, M::File, true, "openRecent", "Open &recent", "", "", "Files opened lately", false},
        {I::SaveCopy, M::File, false, "saveCopy", "&Save a copy…", "", "Ctrl+S", "Write the runs of this file to another one; an edited order to a CSV", false},
        {I::CloseFile, M::File, false, "closeFile", "&Close file", "", "Ctrl+W", "Take this file off the list; nothing on disk changes", false},
        {I::NewWindow, M::File, true, "newWindow", "&New window", "", "Ctrl+Shift+O", "Another window with a view of its own", false},
        {I::MoveToWindow, M::File, false, "moveToWindow", "&Move the run to a new window", "", "", "The run shown goes to a window of its own; this one shows the next run", false},
        {I::ExportPicture, M::File, true, "exportPicture", "Export &picture…", "Export…", "Ctrl+E", "Timeline and memory with a caption, as PNG, SVG or PDF", false},
        {I::ExportReport, M::File, false, "exportReport", "Export &report…", "", "Ctrl+Alt+E", "The run, or the comparison, as one HTML page that needs nothing else", false},
        {I::ExportChrome, M::File, false, "exportChrome", "Export &trace…", "", "", "For Perfetto and chrome://tracing", false},
        {I::ExportCsv, M::File, false, "exportCsv", "Export schedule CS&V…", "", "", "The order as schedule CSV", false},
        {I::Quit, M::File, true, "quit", "&Quit", "", "Ctrl+Q", "", false},

        {I::Undo, M::Edit, false, "undo", "&Undo", "", "Ctrl+Z", "Takes the last change of the order back", false},
        {I::Redo, M::Edit, false, "redo", "&Redo", "", "Ctrl+Shift+Z|Ctrl+Y", "Makes it again", false},
        {I::CopyTable, M::Edit, true, "copyTable", "&Copy table as CSV", "", "Ctrl+C", "The table that has the focus, else the figures at the right, onto the clipboard", false},
        {I::CopyMarkdown, M::Edit, false, "copyMarkdown", "Copy table as &Markdown", "", "Ctrl+Shift+C", "The same as a Markdown table", false},
        {I::Find, M::Edit, true, "find", "&Find op", "", "Ctrl+F|/", "rank:2 mb:5 B", false},
        {I::FindNext, M::Edit, false, "findNext", "Find &next", "", "F3|Ctrl+G", "Enter in the search field", false},
        {I::FindPrevious, M::Edit, false, "findPrevious", "Find pre&vious", "", "Shift+F3|Ctrl+Shift+G", "Shift+Enter in the search field", false},

        {I::Palette, M::Edit, false, "palette", "Comman&d palette…", "", "Ctrl+Shift+P", "Every action, run, schedule, file and op by a few letters of its name", false},
        {I::AddNote, M::Edit, true, "addNote", "Mark with a n&ote", "", "M", "A passing note on the selected op or range; the next one takes its place", false},
        {I::KeepNote, M::Edit, false, "keepNote", "&Keep the note", "", "Shift+M", "Stores the passing note, or a new one of the selection, with the run", false},
        {I::RemoveNote, M::Edit, false, "removeNote", "Re&move the note", "", "Del", "Takes the chosen note away; Ctrl+Z brings it back", false},
        {I::Preferences, M::Edit, true, "preferences", "Pre&ferences…", "", "Ctrl+,", "Theme, text scale, keys, units, folders, session", false},

        {I::Fit, M::View, false, "fit", "&Fit all", "Fit", "Home", "The whole step in view", false},
        {I::FitSelection, M::View, false, "fitSelection", "Fit the se&lection", "", "F", "The selection in view; again: everything", false},
        {I::Back, M::View, false, "back", "View &back", "", "Alt+Left", "The view before", false},
        {I::Forward, M::View, false, "forward", "View &forward", "", "Alt+Right", "The view after", false},
        {I::CommTracks, M::View, true, "commTracks", "Comm &tracks", "Comm tracks", "", "Transfers under each rank", true},
        {I::Memory, M::View, false, "memory", "&Memory", "Memory", "", "Activation memory of each rank on the same axis", true},
        {I::RunsList, M::View, true, "runsList", "&Runs list", "", "Ctrl+L", "Files and their runs, at the left", true},
        {I::SidePanel, M::View, false, "sidePanel", "&Side panel", "", "Ctrl+B", "Figures at the right", true},
        {I::Details, M::View, false, "details", "&Details of the selection", "", "Q", "Scrolls the side panel to the selected op", false},

        {I::RowUp, M::Rows, false, "rowUp", "Row &above", "", "Alt+Up", "Moves the mark on the gutter: the row that the keys for rows mean", false},
        {I::RowDown, M::Rows, false, "rowDown", "Row &below", "", "Alt+Down", "Moves the mark on the gutter: the row that the keys for rows mean", false},
        {I::PinRank, M::Rows, true, "pinRank", "&Pin to the top", "", "Shift+P", "Keeps the ranks chosen over the rows that scroll: those of the selected area, of the marked row, or of the selected op", true},
        {I::FoldRank, M::Rows, false, "foldRank", "&Fold to a thin row", "", "Shift+C", "A thin row of utilisation, without its track", true},
        {I::RankTrack, M::Rows, false, "rankTrack", "&Hide its comm track", "", "Shift+T", "Of the ranks chosen alone; Comm tracks hides all", true},
        {I::OpenGroup, M::Rows, false, "openGroup", "&Open or fold the group", "", "Shift+Return", "Shows the group's ranks one by one, or as one row again", false},
        {I::GroupAuto, M::Rows, true, "groupAuto", "Groups as the number of ranks &needs", "", "", "None up to 64 ranks, else as many as give at most 32 groups", true},
        {I::GroupNone, M::Rows, false, "groupNone", "&Every rank a row", "", "", "", true},
        {I::GroupOf8, M::Rows, false, "groupOf8", "Groups of &8 ranks", "", "", "", true},
        {I::GroupOf32, M::Rows, false, "groupOf32", "Groups of &32 ranks", "", "", "", true},
        {I::GroupOf128, M::Rows, false, "groupOf128", "Groups of &128 ranks", "", "", "", true},
        {I::GroupStage, M::Rows, false, "groupStage", "Groups by &stage", "", "", "Ranks that run the same stages", true},
        {I::GroupBusy, M::Rows, false, "groupBusy", "Groups by b&usy time", "", "", "Ranks that are about as busy as one another, the idlest first", true},
        {I::GroupRange, M::Rows, true, "groupRange", "&Mean, least and most in groups", "", "", "A group's row shows how busy its ranks are in the mean, the idlest and the busiest; else the mean time of each kind", true},
        {I::SubLanes, M::Rows, true, "subLanes", "&Kernels and copies", "", "Shift+K", "Work beside the ops in thin rows under its rank, where the run has it", true},
        {I::WaitLanes, M::Rows, false, "waitLanes", "&Waits", "", "", "What each rank stood waiting at, in thin rows under it", true},
        {I::ResetRows, M::Rows, true, "resetRows", "&Release, open and show all", "", "", "No rank pinned, folded or without its track", false},
        {I::NotesList, M::View, true, "notesList", "&Notes", "", "Ctrl+Shift+M", "The notes of the run shown, in a list", true},
        {I::SearchList, M::View, false, "searchList", "Search &results", "", "Ctrl+Shift+F", "What the search field found, in a list", true},
        {I::SaveLayout, M::Layouts, false, "saveLayout", "&Save this layout…", "", "", "Keeps lists, panels, their sizes and switches under a name", false},
        {I::ResetLayout, M::Layouts, false, "resetLayout", "&Reset the layout", "", "", "Lists and panels as at the first start", false},
        {I::BookmarkJump1, M::Bookmarks, false, "bookmarkJump1", "Go to bookmark 1", "", "Ctrl+1", "", false},
        {I::BookmarkJump2, M::Bookmarks, false, "bookmarkJump2", "Go to bookmark 2", "", "Ctrl+2", "", false},
        {I::BookmarkJump3, M::Bookmarks, false, "bookmarkJump3", "Go to bookmark 3", "", "Ctrl+3", "", false},
        {I::BookmarkJump4, M::Bookmarks, false, "bookmarkJump4", "Go to bookmark 4", "", "Ctrl+4", "", false},
        {I::BookmarkJump5, M::Bookmarks, false, "bookmarkJump5", "Go to bookmark 5", "", "Ctrl+5", "", false},
        {I::BookmarkJump6, M::Bookmarks, false, "bookmarkJump6", "Go to bookmark 6", "", "Ctrl+6", "", false},
        {I::BookmarkJump7, M::Bookmarks, false, "bookmarkJump7", "Go to bookmark 7", "", "Ctrl+7", "", false},
        {I::BookmarkJump8, M::Bookmarks, false, "bookmarkJump8", "Go to bookmark 8", "", "Ctrl+8", "", false},
        {I::BookmarkJump9, M::Bookmarks, false, "bookmarkJump9", "Go to bookmark 9", "", "Ctrl+9", "", false},
        {I::BookmarkSet1, M::Bookmarks, true, "bookmarkSet1", "Set bookmark 1", "", "Ctrl+Shift+1", "", false},
        {I::BookmarkSet2, M::Bookmarks, false, "bookmarkSet2", "Set bookmark 2", "", "Ctrl+Shift+2", "", false},
        {I::BookmarkSet3, M::Bookmarks, false, "bookmarkSet3", "Set bookmark 3", "", "Ctrl+Shift+3", "", false},
        {I::BookmarkSet4, M::Bookmarks, false, "bookmarkSet4", "Set bookmark 4", "", "Ctrl+Shift+4", "", false},
        {I::BookmarkSet5, M::Bookmarks, false, "bookmarkSet5", "Set bookmark 5", "", "Ctrl+Shift+5", "", false},
        {I::BookmarkSet6, M::Bookmarks, false, "bookmarkSet6", "Set bookmark 6", "", "Ctrl+Shift+6", "", false},
        {I::BookmarkSet7, M::Bookmarks, false, "bookmarkSet7", "Set bookmark 7", "", "Ctrl+Shift+7", "", false},
        {I::BookmarkSet8, M::Bookmarks, false, "bookmarkSet8", "Set bookmark 8", "", "Ctrl+Shift+8", "", false},
        {I::BookmarkSet9, M::Bookmarks, false, "bookmarkSet9", "Set bookmark 9", "", "Ctrl+Shift+9", "", false},

        {I::TimeRelative, M::Times, false, "timeRelative", "From the &begin of the step", "", "", "Every step begins at nought", true},
        {I::TimeAbsolute, M::Times, false, "timeAbsolute", "From the begin of the &run", "", "", "Times as they passed since the run began", true},
        {I::UnitAuto, M::Times, true, "unitAuto", "Unit as &suits", "", "", "Each time in the unit that leaves one to three digits before the point", true},
        {I::UnitNanos, M::Times, false, "unitNanos", "&Nanoseconds", "", "", "", true},
        {I::UnitMicros, M::Times, false, "unitMicros", "Mi&croseconds", "", "", "", true},
        {I::UnitMillis, M::Times, false, "unitMillis", "&Milliseconds", "", "", "", true},
        {I::UnitSeconds, M::Times, false, "unitSeconds", "S&econds", "", "", "", true},

        {I::MemoryActivations, M::MemoryCharts, false, "memoryActivations", "&Activations", "", "", "What forwards keep for their backwards; the budget is theirs", true},
        {I::MemoryCommunication, M::MemoryCharts, false, "memoryCommunication", "&Communication", "", "", "Buffers of messages under way, stacked over the activations", true},
        {I::MemoryWorkspace, M::MemoryCharts, false, "memoryWorkspace", "Wor&kspace", "", "", "What an op needs while it runs", true},
        {I::MemoryGradients, M::MemoryCharts, false, "memoryGradients", "&Gradients", "", "", "Of weights, until the optimizer has used them", true},
        {I::MemoryWeights, M::MemoryCharts, false, "memoryWeights", "&Weights", "", "", "Parameters of the rank's stages", true},
        {I::MemoryOptimizer, M::MemoryCharts, false, "memoryOptimizer", "&Optimizer", "", "", "State of the optimizer, such as momentum", true},
        {I::MemoryOwnScale, M::MemoryCharts, true, "memoryOwnScale", "Each rank to its own &scale", "", "", "Else one scale for all, so that heights compare", true},
        {I::MemoryPredicted, M::MemoryCharts, false, "memoryPredicted", "&Predicted over measured", "", "", "The schedule simulated with this run's own costs, dotted over what was measured", true},
        {I::MemoryCounters, M::MemoryCharts, false, "memoryCounters", "Co&unters", "", "", "Counters that the run recorded, each to its own scale", true},

        {I::ThemeSystem, M::Theme, false, "themeSystem", "As the &system", "", "", "", true},
        {I::ThemeLight, M::Theme, false, "themeLight", "&Light", "", "", "", true},
        {I::ThemeDark, M::Theme, false, "themeDark", "&Dark", "", "", "", true},

        {I::ThemeHighContrast, M::Theme, false, "themeHighContrast", "&High contrast", "", "", "", true},
        {I::CutOps, M::Order, false, "cutOps", "C&ut", "", "Ctrl+X", "Takes the chosen ops out of the order; paste puts them back, then for the following microbatches", false},
        {I::CopyOps, M::Order, false, "copyOps", "&Copy the pattern", "Copy", "Ctrl+Ins", "Ctrl+C on the canvas. Remembers the chosen ops, which rank has which and in what rhythm", false},
        {I::PasteOps, M::Order, false, "pasteOps", "&Paste for the next microbatch", "Paste", "Ctrl+V", "Stamps the pattern one period later, with the next microbatch; again for the one after", false},
        {I::RemoveOps, M::Order, false, "removeOps", "Remo&ve", "Remove", "Delete", "Takes the chosen ops out; those the schedule needs wait in the tray", false},
        {I::InsertDelay, M::Order, true, "insertDelay", "Insert &delay before it", "Insert delay", "Shift+D", "A wanted wait, as long as the op", false},
        {I::SplitBackward, M::Order, false, "splitBackward", "&Split B into I and W", "Split B", "B", "The weight gradient stands behind the input gradient and may move away from it", false},
        {I::MergeBackward, M::Order, false, "mergeBackward", "&Merge I and W to B", "Merge I, W", "Shift+B", "One full backward in the place of the input gradient", false},
        {I::InsertRecompute, M::Order, false, "insertRecompute", "&Recompute before its backward", "Recompute", "Shift+R", "An R before the backward: the forward then keeps only its input", false},
        {I::SwapOps, M::Order, false, "swapOps", "S&wap the two", "Swap", "Shift+X", "Two chosen ops of one rank change places", false},
        {I::FillGap, M::Order, false, "fillGap", "&Fill W here", "Fill W here", "Shift+W", "Weight gradients that fit go into the chosen gap, or the one before the chosen op", false},
        {I::SnapOps, M::Order, false, "snapOps", "S&nap to the earliest place", "Snap", "Shift+S", "Each chosen op goes where it can begin earliest", false},
        {I::SnapAll, M::Order, false, "snapAll", "Snap &all", "", "Ctrl+Alt+S", "Each rank takes the op whose inputs came first; memory may grow", false},
        {I::RankAbove, M::Order, true, "rankAbove", "To the rank a&bove", "", "Ctrl+Up", "Where its stage has a copy; a delay goes anywhere", false},
        {I::RankBelow, M::Order, false, "rankBelow", "To the rank be&low", "", "Ctrl+Down", "Where its stage has a copy; a delay goes anywhere", false},
        {I::GoThere, M::Order, false, "goThere", "&Go to the nearest valid place", "", "Ctrl+.", "Of the op that was dropped where it can't stand", false},
        {I::CarryThere, M::Order, false, "carryThere", "Carr&y along what depends on it", "", "Ctrl+Shift+.|Ctrl+>", "Leaves the dropped op there and moves its dependants as far as they must", false},
        {I::ChooseMicrobatch, M::Order, true, "chooseMicrobatch", "Choose its m&icrobatch", "", "Ctrl+D", "All ops of the chosen op's microbatch, to be copied or moved together", false},
        {I::ChooseRank, M::Order, false, "chooseRank", "Choose its rank", "", "Ctrl+Alt+A", "All ops of the chosen op's rank", false},
        {I::ChooseAll, M::Order, false, "chooseAll", "Choose all", "", "Ctrl+A", "Every op", false},
        {I::ExtendLeft, M::Order, false, "extendLeft", "Choose the one before too", "", "Shift+Left", "", false},
        {I::ExtendRight, M::Order, false, "extendRight", "Choose the one behind too", "", "Shift+Right", "", false},
        {I::Microbatches, M::Order, true, "microbatches", "Micr&obatches…", "", "Ctrl+Alt+M", "Another number of them, where the order has a pattern that goes on", false},
        {I::RevertOrder, M::Order, false, "revertOrder", "Back to the original", "", "", "As one change, which can be undone", false},
        {I::ScheduleText, M::Order, true, "scheduleText", "Schedule &text", "", "Ctrl+T", "The order as text under the canvas, typed into and kept in step", true},
        {I::GhostOriginal, M::Order, false, "ghostOriginal", "Outlines of the original", "", "O", "Where ops stood before, as faint outlines", true},
        {I::GhostLibrary, M::Order, false, "ghostLibrary", "Outlines of the library schedule", "", "Shift+O", "Of the schedule chosen in the side panel", true},
        {I::CarryAlong, M::Order, false, "carryAlong", "Moves carry dependants along", "", "", "What depends on a moved op is put off as far as it must be; else only this op moves. Shift while dragging does it once", true},
        {I::StrictMoves, M::Order, false, "strictMoves", "Refuse moves that break the order", "", "", "The op bounces back, with the reason; else it stays there and the fault is outlined", true},

        {I::Record, M::Schedule, false, "record", "&Record…", "Record…", "Ctrl+R", "Train for real under one or several schedules and record what happens", false},
        {I::CancelRecording, M::Schedule, false, "cancelRecording", "&Cancel the recording", "", "", "Stops; complete steps are kept", false},
        {I::NewSchedule, M::Schedule, true, "newSchedule", "&New from library…", "", "Ctrl+N", "Start from a schedule of the library, timed with unit costs", false},
        {I::NewEmpty, M::Schedule, false, "newEmpty", "New e&mpty canvas…", "", "Ctrl+Alt+N", "Every op waits in a tray to be placed by hand", false},
        {I::BuildingBlock, M::Schedule, false, "buildingBlock", "&Building block…", "", "Ctrl+Shift+B", "The passes of one microbatch that V-Min, V-Half and V-ZB repeat: shown, changed, made into a schedule", false},
        {I::EditMode, M::Schedule, false, "editMode", "&Edit the schedule", "Edit", "E", "Drag ops along their rank; the order is checked and timed as you drag", true},
        {I::RunEdited, M::Schedule, false, "runEdited", "R&un the edited schedule", "", "Ctrl+Return", "Train it for real and compare with the original", false},

        {I::CriticalPath, M::Analyse, false, "criticalPath", "&Critical path", "Critical path", "", "Outline the chain of ops that decides when the step ends", true},
        {I::MemoryBudget, M::Analyse, false, "memoryBudget", "Memory &budget…", "", "Ctrl+M", "How much activation memory a rank may use: the dashed line, the headroom, and idle time caused by memory", false},
        {I::NextGap, M::Analyse, true, "nextGap", "Explain the next &gap", "", "G", "The longest gap first, then shorter ones, of the cause that is marked: its cause, its chain and what would remove it", false},
        {I::PreviousGap, M::Analyse, false, "previousGap", "Explain the gap before", "", "Shift+G", "", false},
        {I::Slack, M::Analyse, false, "slack", "&Slack of ops", "", "Ctrl+Shift+S", "Ops fade with how much later they could begin; what keeps its colour decides when the step ends", true},
        {I::WhatIf, M::Analyse, true, "whatIf", "&What if…", "", "Ctrl+Shift+W", "Other durations, links, microbatches or channels, simulated at once below the run as it is", true},
        {I::Residuals, M::Analyse, false, "residuals", "&Predicted against measured", "", "Ctrl+Shift+R", "What the costs predict of each op and of the step, against what was measured", true},
        {I::LoweredView, M::Analyse, false, "loweredView", "&Lowered schedule", "", "Ctrl+Shift+L", "Sends and receives put into the order by a rule, how messages then travel, and how channels are used", true},
        {I::Compare, M::Analyse, true, "compare", "&Compare…", "Compare", "Ctrl+K", "Two to four runs on one axis, what differs and why", true},
        {I::SwapCompare, M::Analyse, false, "swapCompare", "S&wap A and B", "", "", "", false},
        {I::NextCompared, M::Analyse, false, "nextCompared", "&Other run against A", "", "Ctrl+Shift+K", "Which of the runs shown the panel and the memory curves set against A", false},
        {I::AlignAtOp, M::Analyse, false, "alignAtOp", "Align at the selected &op", "", "Ctrl+J", "The op stands at one place of the axis in every run; again: the begins of their steps do", true},
        {I::SetBaseline, M::Analyse, false, "setBaseline", "Use as &baseline", "", "Ctrl+Shift+D", "Every run shown afterwards is measured against this one, until it is cleared", true},
        {I::Explorer, M::Analyse, false, "explorer", "E&xplorer", "", "Ctrl+Shift+E", "Every schedule of the library for a shape, costs and a memory cap: memory against time, and over one or two parameters", true},
        {I::SqlConsole, M::Analyse, true, "sqlConsole", "S&QL console", "", ":", "Questions to the run file in SQL; rows are shown on the timeline", true},
        {I::AllSteps, M::View, true, "allSteps", "All ste&ps on one axis", "", "Ctrl+Shift+A", "Every step of the run, with a line where each begins; again: the one step", true},
        {I::ChooseSteps, M::View, false, "chooseSteps", "Choose s&teps…", "", "", "From one step to another on one axis", false},
        {I::PreviousStep, M::Analyse, true, "previousStep", "&Previous step", "", "Ctrl+PgUp", "", false},
        {I::NextStep, M::Analyse, false, "nextStep", "&Next step", "", "Ctrl+PgDown", "", false},

        {I::Lessons, M::Learn, false, "lessons", "&Lessons…", "Lessons", "Ctrl+Shift+N", "Sixteen questions, each answered by hand and by a real run on this computer", false},
        {I::OpenLesson, M::Learn, false, "openLesson", "Open a lesson &file…", "", "", "A lesson of your own or of a teacher (.md)", false},
        {I::NextLessonStep, M::Learn, false, "nextLessonStep", "N&ext step of the lesson", "", "Ctrl+Alt+Right", "When the step's goal is met", false},
        {I::PreviousLessonStep, M::Learn, false, "previousLessonStep", "Step &before", "", "Ctrl+Alt+Left", "", false},
        {I::LessonHint, M::Learn, false, "lessonHint", "&Hint", "", "Ctrl+Alt+H", "A point, then the principle, then one move", false},
        {I::LeaveLesson, M::Learn, false, "leaveLesson", "Lea&ve the lesson", "", "", "What was done is kept", false},
        {I::Glossary, M::Learn, true, "glossary", "&Glossary", "", "Ctrl+Alt+G", "Every term on screen, and what other tools call it", true},
        {I::ExplainTerm, M::Learn, false, "explainTerm", "E&xplain what has the focus", "", "Shift+F1", "The terms of the label under the pointer or with the focus", false},
        {I::Play, M::Learn, true, "play", "Pla&y", "", "P", "Half a second a rank share, slower at what happens for the first time, faster where a pattern repeats", true},
        {I::NextBeat, M::Learn, false, "nextBeat", "&Next beat", "", "Space", "Ops that begin together are one beat; the first press begins at the first", false},
        {I::PreviousBeat, M::Learn, false, "previousBeat", "Pre&vious beat", "", "Shift+Space", "", false},
        {I::NextMoment, M::Learn, false, "nextMoment", "Next &interesting beat", "", "N", "The next first of its kind, gap of half an op, peak, or change of the pattern", false},
        {I::Pace1, M::Learn, true, "pace1", "Pace × &1", "", "1", "", true},
        {I::Pace2, M::Learn, false, "pace2", "Pace × &2", "", "2", "", true},
        {I::Pace3, M::Learn, false, "pace3", "Pace × &4", "", "3", "", true},
        {I::Pace4, M::Learn, false, "pace4", "Pace × &8", "", "4", "", true},
        {I::ReducedMotion, M::Learn, true, "reducedMotion", "&Less motion", "", "", "Playback jumps from beat to beat, and no parcels fly", true},

        {I::Keys, M::Help, false, "keys", "&Keys", "", "?|F1", "What every key does", false},
        {I::KeysPerfetto, M::Help, true, "keysPerfetto", "Keys as in &Perfetto", "", "", "", true},
        {I::KeysNsight, M::Help, false, "keysNsight", "Keys as in &Nsight", "", "", "", true},
        {I::KeysTracy, M::Help, false, "keysTracy", "Keys as in &Tracy", "", "", "", true},
        {I::About, M::Help, true, "about", "&About Stagewright", "", "", "", false},
    };
    return table;
}

Actions::Actions(QWidget* window) : QObject(window)
{
    for (const ActionEntry& entry : actionTable()) {
        auto* action = new QAction(tr(entry.text), window);
        action->setObjectName(QString::fromLatin1(entry.name));
        action->setCheckable(entry.checkable);
        QList<QKeySequence> keys;
        for (const QString& key : QString::fromLatin1(entry.keys).split(QLatin1Char('|'), Qt::SkipEmptyParts))
            keys << QKeySequence(key, QKeySequence::PortableText);
        action->setShortcuts(keys);
        QString tip = *entry.tooltip != '\0' ? tr(entry.tooltip) : tr(entry.text).remove(QLatin1Char('&'));
        action->setStatusTip(tip);
        if (!keys.isEmpty()) tip += QStringLiteral("  (%1)").arg(keys.first().toString(QKeySequence::NativeText));
        action->setToolTip(tip);
        window->addAction(action);
        m_actions[entry.id] = action;
    }
}

QString Actions::buttonText(ActionId id)
{
    for (const ActionEntry& entry : actionTable())
        if (entry.id == id) return *entry.button != '\0' ? tr(entry.button) : tr(entry.text).remove(QLatin1Char('&'));
    return {};
}

} // namespace stagewright
