#include "app/ui/workspace/actions.h"

#include <algorithm>

#include <QWidget>

namespace stagewright {

const std::vector<ActionEntry>& Actions::table()
{
    using I = ActionId;
    using M = MenuId;
    static const std::vector<ActionEntry> table{
        {I::Open, M::File, false, "open", QT_TR_NOOP("&Open…"), QT_TR_NOOP("Open…"), "Ctrl+O", QT_TR_NOOP("Opens run files (.stagewright) or schedules (.csv)"), false},
        {I::ImportTraces, M::File, false, "importTraces", QT_TR_NOOP("&Import traces…"), QT_TR_NOOP("Import…"), "Ctrl+I", QT_TR_NOOP("Imports traces of PyTorch's profiler, Nsight Systems or Chrome as runs and recognises their schedules"), false},
        {I::OpenRecent, M::File, true, "openRecent", QT_TR_NOOP("Open &recent"), "", "", QT_TR_NOOP("Recently opened files"), false},
        {I::SaveCopy, M::File, false, "saveCopy", QT_TR_NOOP("&Save a copy…"), "", "Ctrl+S", QT_TR_NOOP("Writes this file's runs to another file, or an edited order to a CSV"), false},
        {I::CloseFile, M::File, false, "closeFile", QT_TR_NOOP("&Close file"), "", "Ctrl+W", QT_TR_NOOP("Removes this file from the list; nothing on disk changes"), false},
        {I::NewWindow, M::File, true, "newWindow", QT_TR_NOOP("&New window"), "", "Ctrl+Shift+O", QT_TR_NOOP("Opens another window with its own view"), false},
        {I::MoveToWindow, M::File, false, "moveToWindow", QT_TR_NOOP("&Move the run to a new window"), "", "", QT_TR_NOOP("Shows this run in its own window; this window shows the next run"), false},
        {I::ExportPicture, M::File, true, "exportPicture", QT_TR_NOOP("Export &picture…"), QT_TR_NOOP("Export…"), "Ctrl+E", QT_TR_NOOP("Timeline and memory with a caption, as PNG, SVG or PDF"), false},
        {I::ExportReport, M::File, false, "exportReport", QT_TR_NOOP("Export &report…"), "", "Ctrl+Alt+E", QT_TR_NOOP("The run or the comparison as one self-contained HTML page"), false},
        {I::ExportRun, M::File, false, "exportRun", QT_TR_NOOP("Export for ot&her tools…"), "", "", QT_TR_NOOP("Traces, PyTorch schedules, tables: in every format that Stagewright writes"), false},
        {I::Quit, M::File, true, "quit", QT_TR_NOOP("&Quit"), "", "Ctrl+Q", "", false},

        {I::Undo, M::Edit, false, "undo", QT_TR_NOOP("&Undo"), "", "Ctrl+Z", QT_TR_NOOP("Undoes the last change to the order"), false},
        {I::Redo, M::Edit, false, "redo", QT_TR_NOOP("&Redo"), "", "Ctrl+Shift+Z|Ctrl+Y", QT_TR_NOOP("Redoes the change undone last"), false},
        {I::CopyTable, M::Edit, true, "copyTable", QT_TR_NOOP("&Copy table as CSV"), "", "Ctrl+C", QT_TR_NOOP("Copies the focused table, or else the figures at the right, to the clipboard"), false},
        {I::CopyMarkdown, M::Edit, false, "copyMarkdown", QT_TR_NOOP("Copy table as &Markdown"), "", "Ctrl+Shift+C", QT_TR_NOOP("The same, as a Markdown table"), false},
        {I::Find, M::Edit, true, "find", QT_TR_NOOP("&Find op"), "", "Ctrl+F|/", QT_TR_NOOP("rank:2 mb:5 B"), false},
        {I::FindNext, M::Edit, false, "findNext", QT_TR_NOOP("Find &next"), "", "F3|Ctrl+G", QT_TR_NOOP("Enter in the search field"), false},
        {I::FindPrevious, M::Edit, false, "findPrevious", QT_TR_NOOP("Find pre&vious"), "", "Shift+F3|Ctrl+Shift+G", QT_TR_NOOP("Shift+Enter in the search field"), false},

        {I::Palette, M::Edit, false, "palette", QT_TR_NOOP("Comman&d palette…"), "", "Ctrl+Shift+P", QT_TR_NOOP("Finds any action, run, schedule, file or op by a few letters of its name"), false},
        {I::AddNote, M::Edit, true, "addNote", QT_TR_NOOP("Mark with a n&ote"), "", "M", QT_TR_NOOP("A temporary note on the selected op or range, with the text you type; the next one replaces it"), false},
        {I::KeepNote, M::Edit, false, "keepNote", QT_TR_NOOP("&Keep the note"), "", "Shift+M", QT_TR_NOOP("Stores the temporary note, or a new one on the selection, with the run"), false},
        {I::RemoveNote, M::Edit, false, "removeNote", QT_TR_NOOP("Re&move the note"), "", "Del", QT_TR_NOOP("Removes the selected note; Ctrl+Z restores it"), false},
        {I::Preferences, M::Edit, true, "preferences", QT_TR_NOOP("Pre&ferences…"), "", "Ctrl+,", QT_TR_NOOP("Theme, text scale, keys, units, folders, session"), false},

        {I::Fit, M::View, false, "fit", QT_TR_NOOP("&Fit all"), QT_TR_NOOP("Fit"), "Home", QT_TR_NOOP("Shows the whole step"), false},
        {I::FitSelection, M::View, false, "fitSelection", QT_TR_NOOP("Fit the se&lection"), "", "F", QT_TR_NOOP("Zooms to the selection; again: everything"), false},
        {I::Back, M::View, false, "back", QT_TR_NOOP("View &back"), "", "Alt+Left", QT_TR_NOOP("Previous view"), false},
        {I::Forward, M::View, false, "forward", QT_TR_NOOP("View &forward"), "", "Alt+Right", QT_TR_NOOP("Next view"), false},
        {I::CommTracks, M::View, true, "commTracks", QT_TR_NOOP("Comm &tracks"), QT_TR_NOOP("Comm tracks"), "", QT_TR_NOOP("Shows transfers under each rank"), true},
        {I::Memory, M::View, false, "memory", QT_TR_NOOP("&Memory"), QT_TR_NOOP("Memory"), "", QT_TR_NOOP("Activation memory of each rank on the same axis"), true},
        {I::RunsList, M::View, true, "runsList", QT_TR_NOOP("&Runs list"), "", "Ctrl+L", QT_TR_NOOP("Files and their runs, at the left"), true},
        {I::SidePanel, M::View, false, "sidePanel", QT_TR_NOOP("&Side panel"), "", "Ctrl+B", QT_TR_NOOP("Figures at the right"), true},
        {I::Details, M::View, false, "details", QT_TR_NOOP("&Details of the selection"), "", "Q", QT_TR_NOOP("Scrolls the side panel to the selected op"), false},

        {I::RowUp, M::Rows, false, "rowUp", QT_TR_NOOP("Row &above"), "", "Alt+Up", QT_TR_NOOP("Moves the row mark in the gutter; the row keys act on the marked row"), false},
        {I::RowDown, M::Rows, false, "rowDown", QT_TR_NOOP("Row &below"), "", "Alt+Down", QT_TR_NOOP("Moves the row mark in the gutter; the row keys act on the marked row"), false},
        {I::PinRank, M::Rows, true, "pinRank", QT_TR_NOOP("&Pin to the top"), "", "Shift+P", QT_TR_NOOP("Keeps ranks above the scrolling rows: those of the selected area, the marked row or the selected op"), true},
        {I::FoldRank, M::Rows, false, "foldRank", QT_TR_NOOP("&Fold to a thin row"), "", "Shift+C", QT_TR_NOOP("Shows a thin row of utilisation, without its track"), true},
        {I::RankTrack, M::Rows, false, "rankTrack", QT_TR_NOOP("&Hide its comm track"), "", "Shift+T", QT_TR_NOOP("For these ranks only; Comm tracks hides all of them"), true},
        {I::OpenGroup, M::Rows, false, "openGroup", QT_TR_NOOP("&Open or fold the group"), "", "Shift+Return", QT_TR_NOOP("Shows the group's ranks one by one, or as one row again"), false},
        {I::GroupAuto, M::Rows, true, "groupAuto", QT_TR_NOOP("Automatic groups by &number of ranks"), "", "", QT_TR_NOOP("No groups up to 64 ranks; above that, at most 32 groups"), true},
        {I::GroupNone, M::Rows, false, "groupNone", QT_TR_NOOP("On&e row per rank"), "", "", "", true},
        {I::GroupOf8, M::Rows, false, "groupOf8", QT_TR_NOOP("Groups of &8 ranks"), "", "", "", true},
        {I::GroupOf32, M::Rows, false, "groupOf32", QT_TR_NOOP("Groups of &32 ranks"), "", "", "", true},
        {I::GroupOf128, M::Rows, false, "groupOf128", QT_TR_NOOP("Groups of &128 ranks"), "", "", "", true},
        {I::GroupStage, M::Rows, false, "groupStage", QT_TR_NOOP("Groups by &stage"), "", "", QT_TR_NOOP("Groups ranks that run the same stages"), true},
        {I::GroupBusy, M::Rows, false, "groupBusy", QT_TR_NOOP("Groups by b&usy time"), "", "", QT_TR_NOOP("Groups ranks that are about equally busy, the idlest first"), true},
        {I::GroupHost, M::Rows, false, "groupHost", QT_TR_NOOP("Groups by h&ost"), "", "", QT_TR_NOOP("Groups ranks on the same host, where the trace says"), true},
        {I::GroupPipeline, M::Rows, false, "groupPipeline", QT_TR_NOOP("Groups by p&ipeline place"), "", "", QT_TR_NOOP("Groups ranks with the same place in the pipeline, as the trace's process groups say"), true},
        {I::GroupData, M::Rows, false, "groupData", QT_TR_NOOP("Groups by &data-parallel place"), "", "", QT_TR_NOOP("Groups ranks with the same data-parallel place, as the trace's process groups say"), true},
        {I::GroupTensor, M::Rows, false, "groupTensor", QT_TR_NOOP("Groups by tensor-parallel place"), "", "", QT_TR_NOOP("Groups ranks with the same tensor-parallel place, as the trace's process groups say"), true},
        {I::GroupExpert, M::Rows, false, "groupExpert", QT_TR_NOOP("Groups by e&xpert-parallel place"), "", "", QT_TR_NOOP("Groups ranks with the same expert-parallel place, as the trace's process groups say"), true},
        {I::GroupContext, M::Rows, false, "groupContext", QT_TR_NOOP("Groups by context-parallel place"), "", "", QT_TR_NOOP("Groups ranks with the same context-parallel place, as the trace's process groups say"), true},
        {I::GroupReplica, M::Rows, false, "groupReplica", QT_TR_NOOP("Replicas under their pipeline rank"), "", "", QT_TR_NOOP("Shows the ranks of the first replica, and the other replicas' ranks folded below each"), true},
        {I::GroupRange, M::Rows, true, "groupRange", QT_TR_NOOP("&Mean, minimum and maximum in groups"), "", "", QT_TR_NOOP("A group's row shows how busy its ranks are: mean, idlest and busiest; otherwise the mean time of each kind"), true},
        {I::SubLanes, M::Rows, true, "subLanes", QT_TR_NOOP("&Kernels and copies"), "", "Shift+K", QT_TR_NOOP("Work other than ops, in thin rows under its rank, where the run has any"), true},
        {I::KernelClasses, M::Rows, false, "kernelClasses", QT_TR_NOOP("Kernels by &class"), "", "", QT_TR_NOOP("Colours kernels and copies by what they are, such as matrix products, and ranges by name, instead of the ops that launched them"), true},
        {I::WaitLanes, M::Rows, false, "waitLanes", QT_TR_NOOP("&Waits"), "", "", QT_TR_NOOP("What each rank waited for, in thin rows under it"), true},
        {I::RowsTaller, M::Rows, true, "rowsTaller", QT_TR_NOOP("&Taller rows"), "", "Ctrl+Shift+Up", QT_TR_NOOP("Ctrl+Shift+wheel over the timeline; remembered"), false},
        {I::RowsLower, M::Rows, false, "rowsLower", QT_TR_NOOP("Sma&ller rows"), "", "Ctrl+Shift+Down", QT_TR_NOOP("Ctrl+Shift+wheel over the timeline; remembered"), false},
        {I::RowsAutomatic, M::Rows, false, "rowsAutomatic", QT_TR_NOOP("Automatic row hei&ght"), "", "", QT_TR_NOOP("Taller rows where the window has room"), true},
        {I::ResetRows, M::Rows, true, "resetRows", QT_TR_NOOP("&Reset all rows"), "", "", QT_TR_NOOP("Unpins and unfolds every rank and shows every track"), false},
        {I::NotesList, M::View, true, "notesList", QT_TR_NOOP("&Notes"), "", "Ctrl+Shift+M", QT_TR_NOOP("The notes of the run shown, in a list"), true},
        {I::SearchList, M::View, false, "searchList", QT_TR_NOOP("Search &results"), "", "Ctrl+Shift+F", QT_TR_NOOP("The search results in a list"), true},
        {I::SaveLayout, M::Layouts, false, "saveLayout", QT_TR_NOOP("&Save this layout…"), "", "", QT_TR_NOOP("Saves lists, panels, their sizes and switches under a name"), false},
        {I::ResetLayout, M::Layouts, false, "resetLayout", QT_TR_NOOP("&Reset the layout"), "", "", QT_TR_NOOP("Restores the default lists and panels"), false},
        {I::BookmarkJump1, M::Bookmarks, false, "bookmarkJump1", QT_TR_NOOP("Go to bookmark 1"), "", "Ctrl+1", "", false},
        {I::BookmarkJump2, M::Bookmarks, false, "bookmarkJump2", QT_TR_NOOP("Go to bookmark 2"), "", "Ctrl+2", "", false},
        {I::BookmarkJump3, M::Bookmarks, false, "bookmarkJump3", QT_TR_NOOP("Go to bookmark 3"), "", "Ctrl+3", "", false},
        {I::BookmarkJump4, M::Bookmarks, false, "bookmarkJump4", QT_TR_NOOP("Go to bookmark 4"), "", "Ctrl+4", "", false},
        {I::BookmarkJump5, M::Bookmarks, false, "bookmarkJump5", QT_TR_NOOP("Go to bookmark 5"), "", "Ctrl+5", "", false},
        {I::BookmarkJump6, M::Bookmarks, false, "bookmarkJump6", QT_TR_NOOP("Go to bookmark 6"), "", "Ctrl+6", "", false},
        {I::BookmarkJump7, M::Bookmarks, false, "bookmarkJump7", QT_TR_NOOP("Go to bookmark 7"), "", "Ctrl+7", "", false},
        {I::BookmarkJump8, M::Bookmarks, false, "bookmarkJump8", QT_TR_NOOP("Go to bookmark 8"), "", "Ctrl+8", "", false},
        {I::BookmarkJump9, M::Bookmarks, false, "bookmarkJump9", QT_TR_NOOP("Go to bookmark 9"), "", "Ctrl+9", "", false},
        {I::BookmarkSet1, M::Bookmarks, true, "bookmarkSet1", QT_TR_NOOP("Set bookmark 1"), "", "Ctrl+Shift+1", "", false},
        {I::BookmarkSet2, M::Bookmarks, false, "bookmarkSet2", QT_TR_NOOP("Set bookmark 2"), "", "Ctrl+Shift+2", "", false},
        {I::BookmarkSet3, M::Bookmarks, false, "bookmarkSet3", QT_TR_NOOP("Set bookmark 3"), "", "Ctrl+Shift+3", "", false},
        {I::BookmarkSet4, M::Bookmarks, false, "bookmarkSet4", QT_TR_NOOP("Set bookmark 4"), "", "Ctrl+Shift+4", "", false},
        {I::BookmarkSet5, M::Bookmarks, false, "bookmarkSet5", QT_TR_NOOP("Set bookmark 5"), "", "Ctrl+Shift+5", "", false},
        {I::BookmarkSet6, M::Bookmarks, false, "bookmarkSet6", QT_TR_NOOP("Set bookmark 6"), "", "Ctrl+Shift+6", "", false},
        {I::BookmarkSet7, M::Bookmarks, false, "bookmarkSet7", QT_TR_NOOP("Set bookmark 7"), "", "Ctrl+Shift+7", "", false},
        {I::BookmarkSet8, M::Bookmarks, false, "bookmarkSet8", QT_TR_NOOP("Set bookmark 8"), "", "Ctrl+Shift+8", "", false},
        {I::BookmarkSet9, M::Bookmarks, false, "bookmarkSet9", QT_TR_NOOP("Set bookmark 9"), "", "Ctrl+Shift+9", "", false},

        {I::TimeRelative, M::Times, false, "timeRelative", QT_TR_NOOP("From the &start of the step"), "", "", QT_TR_NOOP("Every step starts at zero"), true},
        {I::TimeAbsolute, M::Times, false, "timeAbsolute", QT_TR_NOOP("From the start of the &run"), "", "", QT_TR_NOOP("Time since the run started"), true},
        {I::UnitAuto, M::Times, true, "unitAuto", QT_TR_NOOP("&Automatic unit"), "", "", QT_TR_NOOP("Each time in the unit that leaves one to three digits before the decimal point"), true},
        {I::UnitNanos, M::Times, false, "unitNanos", QT_TR_NOOP("&Nanoseconds"), "", "", "", true},
        {I::UnitMicros, M::Times, false, "unitMicros", QT_TR_NOOP("Mi&croseconds"), "", "", "", true},
        {I::UnitMillis, M::Times, false, "unitMillis", QT_TR_NOOP("&Milliseconds"), "", "", "", true},
        {I::UnitSeconds, M::Times, false, "unitSeconds", QT_TR_NOOP("S&econds"), "", "", "", true},

        {I::MemoryActivations, M::MemoryCharts, false, "memoryActivations", QT_TR_NOOP("&Activations"), "", "", QT_TR_NOOP("What forwards keep for their backwards; the budget applies to these"), true},
        {I::MemoryCommunication, M::MemoryCharts, false, "memoryCommunication", QT_TR_NOOP("&Communication"), "", "", QT_TR_NOOP("Buffers of messages in flight, stacked on the activations"), true},
        {I::MemoryWorkspace, M::MemoryCharts, false, "memoryWorkspace", QT_TR_NOOP("Wor&kspace"), "", "", QT_TR_NOOP("What an op needs while it runs"), true},
        {I::MemoryGradients, M::MemoryCharts, false, "memoryGradients", QT_TR_NOOP("&Gradients"), "", "", QT_TR_NOOP("Weight gradients, until the optimizer has used them"), true},
        {I::MemoryWeights, M::MemoryCharts, false, "memoryWeights", QT_TR_NOOP("&Weights"), "", "", QT_TR_NOOP("Parameters of the rank's stages"), true},
        {I::MemoryOptimizer, M::MemoryCharts, false, "memoryOptimizer", QT_TR_NOOP("&Optimizer"), "", "", QT_TR_NOOP("State of the optimizer, such as momentum"), true},
        {I::MemoryGathered, M::MemoryCharts, false, "memoryGathered", QT_TR_NOOP("Gathered weights"), "", "", QT_TR_NOOP("Weights of other owners, from a gather until their release"), true},
        {I::MemoryBuckets, M::MemoryCharts, false, "memoryBuckets", QT_TR_NOOP("Gradient buckets"), "", "", QT_TR_NOOP("Gradients on their way to their owners"), true},
        {I::MemoryAll, M::MemoryCharts, false, "memoryAll", QT_TR_NOOP("All categories"), "", "", QT_TR_NOOP("Stacks everything that the run says of its memory; again: activations alone"), true},
        {I::MemoryOwnScale, M::MemoryCharts, true, "memoryOwnScale", QT_TR_NOOP("Each rank on its own &scale"), "", "", QT_TR_NOOP("Otherwise one scale for all ranks, so that heights compare"), true},
        {I::MemoryPredicted, M::MemoryCharts, false, "memoryPredicted", QT_TR_NOOP("&Predicted over measured"), "", "", QT_TR_NOOP("The schedule simulated with this run's own costs, dotted over the measured curve"), true},
        {I::MemoryCounters, M::MemoryCharts, false, "memoryCounters", QT_TR_NOOP("Co&unters"), "", "", QT_TR_NOOP("Counters that the run recorded, each on its own scale"), true},

        {I::ThemeSystem, M::Theme, false, "themeSystem", QT_TR_NOOP("Follow the &system"), "", "", "", true},
        {I::ThemeLight, M::Theme, false, "themeLight", QT_TR_NOOP("&Light"), "", "", "", true},
        {I::ThemeDark, M::Theme, false, "themeDark", QT_TR_NOOP("&Dark"), "", "", "", true},

        {I::ThemeHighContrast, M::Theme, false, "themeHighContrast", QT_TR_NOOP("&High contrast"), "", "", "", true},
        {I::HatchKinds, M::Theme, true, "hatchKinds", QT_TR_NOOP("Hatched &kinds"), "", "", QT_TR_NOOP("Backward, weight gradient and communication differ by hatch as well as colour; Preferences also offer “with high contrast”"), true},
        {I::CutOps, M::Order, false, "cutOps", QT_TR_NOOP("C&ut"), "", "Ctrl+X", QT_TR_NOOP("Removes the selected ops; the first Paste puts them back, further ones paste them for the following microbatches"), false},
        {I::CopyOps, M::Order, false, "copyOps", QT_TR_NOOP("&Copy the pattern"), QT_TR_NOOP("Copy"), "Ctrl+Ins", QT_TR_NOOP("Ctrl+C on the canvas. Copies the selected ops with their ranks and rhythm"), false},
        {I::PasteOps, M::Order, false, "pasteOps", QT_TR_NOOP("&Paste for the next microbatch"), QT_TR_NOOP("Paste"), "Ctrl+V", QT_TR_NOOP("Pastes the pattern one period later for the next microbatch; again for the one after"), false},
        {I::RemoveOps, M::Order, false, "removeOps", QT_TR_NOOP("Remo&ve"), QT_TR_NOOP("Remove"), "Delete", QT_TR_NOOP("Removes the selected ops; those the schedule needs go to the tray"), false},
        {I::InsertDelay, M::Order, true, "insertDelay", QT_TR_NOOP("Insert &delay before it"), QT_TR_NOOP("Insert delay"), "Shift+D", QT_TR_NOOP("An intended delay, as long as the op"), false},
        {I::SplitBackward, M::Order, false, "splitBackward", QT_TR_NOOP("&Split B into I and W"), QT_TR_NOOP("Split B"), "B", QT_TR_NOOP("The weight gradient follows the input gradient and can be moved on its own"), false},
        {I::MergeBackward, M::Order, false, "mergeBackward", QT_TR_NOOP("&Merge I and W into B"), QT_TR_NOOP("Merge I, W"), "Shift+B", QT_TR_NOOP("One full backward in place of the input gradient"), false},
        {I::InsertRecompute, M::Order, false, "insertRecompute", QT_TR_NOOP("&Recompute before its backward"), QT_TR_NOOP("Recompute"), "Shift+R", QT_TR_NOOP("Inserts R before the backward, so the forward keeps only its input"), false},
        {I::SwapOps, M::Order, false, "swapOps", QT_TR_NOOP("S&wap the two ops"), QT_TR_NOOP("Swap"), "Shift+X", QT_TR_NOOP("Swaps the two selected ops of one rank"), false},
        {I::FillGap, M::Order, false, "fillGap", QT_TR_NOOP("&Fill W here"), QT_TR_NOOP("Fill W here"), "Shift+W", QT_TR_NOOP("Moves weight gradients that fit into the selected gap, or the one before the selected op"), false},
        {I::SnapOps, M::Order, false, "snapOps", QT_TR_NOOP("S&nap to the earliest place"), QT_TR_NOOP("Snap"), "Shift+S", QT_TR_NOOP("Moves each selected op to where it can start earliest"), false},
        {I::SnapAll, M::Order, false, "snapAll", QT_TR_NOOP("Snap &all"), "", "Ctrl+Alt+S", QT_TR_NOOP("Each rank runs the op whose inputs arrived first; memory may grow"), false},
        {I::RankAbove, M::Order, true, "rankAbove", QT_TR_NOOP("Move to the rank a&bove"), "", "Ctrl+Up", QT_TR_NOOP("Only to a rank with a copy of its stage; a delay can go anywhere"), false},
        {I::RankBelow, M::Order, false, "rankBelow", QT_TR_NOOP("Move to the rank be&low"), "", "Ctrl+Down", QT_TR_NOOP("Only to a rank with a copy of its stage; a delay can go anywhere"), false},
        {I::GoThere, M::Order, false, "goThere", QT_TR_NOOP("&Go to the nearest valid place"), "", "Ctrl+.", QT_TR_NOOP("For the op that was dropped at an invalid place"), false},
        {I::CarryThere, M::Order, false, "carryThere", QT_TR_NOOP("Carr&y its dependants along"), "", "Ctrl+Shift+.|Ctrl+>", QT_TR_NOOP("Leaves the dropped op there and moves its dependants as far as needed"), false},
        {I::ChooseMicrobatch, M::Order, true, "chooseMicrobatch", QT_TR_NOOP("Select its m&icrobatch"), "", "Ctrl+D", QT_TR_NOOP("Selects all ops of the same microbatch, to copy or move them together"), false},
        {I::ChooseRank, M::Order, false, "chooseRank", QT_TR_NOOP("Select its rank"), "", "Ctrl+Alt+A", QT_TR_NOOP("Selects all ops of the same rank"), false},
        {I::ChooseAll, M::Order, false, "chooseAll", QT_TR_NOOP("Select all"), "", "Ctrl+A", QT_TR_NOOP("Selects every op"), false},
        {I::ExtendLeft, M::Order, false, "extendLeft", QT_TR_NOOP("Extend the selection to the previous op"), "", "Shift+Left", "", false},
        {I::ExtendRight, M::Order, false, "extendRight", QT_TR_NOOP("Extend the selection to the next op"), "", "Shift+Right", "", false},
        {I::Microbatches, M::Order, true, "microbatches", QT_TR_NOOP("Micr&obatches…"), "", "Ctrl+Alt+M", QT_TR_NOOP("Changes their number, where the order has a repeating pattern"), false},
        {I::RevertOrder, M::Order, false, "revertOrder", QT_TR_NOOP("Back to the original"), "", "", QT_TR_NOOP("One change, which can be undone"), false},
        {I::ScheduleText, M::Order, true, "scheduleText", QT_TR_NOOP("Schedule &text"), "", "Ctrl+T", QT_TR_NOOP("The order as editable text under the canvas, kept in sync"), true},
        {I::GhostOriginal, M::Order, false, "ghostOriginal", QT_TR_NOOP("Outlines of the original"), "", "O", QT_TR_NOOP("Where the ops were, as faint outlines"), true},
        {I::GhostLibrary, M::Order, false, "ghostLibrary", QT_TR_NOOP("Outlines of the library schedule"), "", "Shift+O", QT_TR_NOOP("For the schedule chosen in the side panel"), true},
        {I::CarryAlong, M::Order, false, "carryAlong", QT_TR_NOOP("Moves carry dependants along"), "", "", QT_TR_NOOP("Ops that depend on a moved op move later as far as needed; otherwise only that op moves. Hold Shift while dragging to do it once"), true},
        {I::StrictMoves, M::Order, false, "strictMoves", QT_TR_NOOP("Refuse moves that break the order"), "", "", QT_TR_NOOP("The op moves back and the reason is shown; otherwise it stays and the fault is outlined"), true},

        {I::Record, M::Schedule, false, "record", QT_TR_NOOP("&Record…"), QT_TR_NOOP("Record…"), "Ctrl+R", QT_TR_NOOP("Trains for real under one or several schedules and records what happens"), false},
        {I::CancelRecording, M::Schedule, false, "cancelRecording", QT_TR_NOOP("&Cancel the recording"), "", "", QT_TR_NOOP("Stops; complete steps are kept"), false},
        {I::NewSchedule, M::Schedule, true, "newSchedule", QT_TR_NOOP("&New from library…"), "", "Ctrl+N", QT_TR_NOOP("Starts from a library schedule, timed with unit costs"), false},
        {I::NewEmpty, M::Schedule, false, "newEmpty", QT_TR_NOOP("New e&mpty canvas…"), "", "Ctrl+Alt+N", QT_TR_NOOP("Every op starts in a tray, to be placed by hand"), false},
        {I::BuildingBlock, M::Schedule, false, "buildingBlock", QT_TR_NOOP("&Building block…"), "", "Ctrl+Shift+B", QT_TR_NOOP("The passes of one microbatch that V-Min, V-Half and V-ZB repeat: view them, change them, make a schedule from them"), false},
        {I::EditMode, M::Schedule, false, "editMode", QT_TR_NOOP("&Edit the schedule"), QT_TR_NOOP("Edit"), "E", QT_TR_NOOP("Drag ops along their rank; the order is checked and timed as you drag"), true},
        {I::RunEdited, M::Schedule, false, "runEdited", QT_TR_NOOP("R&un the edited schedule"), "", "Ctrl+Return", QT_TR_NOOP("Trains it for real and compares it with the original"), false},

        {I::CriticalPath, M::Analyse, false, "criticalPath", QT_TR_NOOP("&Critical path"), QT_TR_NOOP("Critical path"), "", QT_TR_NOOP("Outlines the chain of ops that decides when the step ends"), true},
        {I::MemoryBudget, M::Analyse, false, "memoryBudget", QT_TR_NOOP("Memory &budget…"), "", "Ctrl+M", QT_TR_NOOP("How much activation memory a rank may use: the dashed line, the headroom, and idle time caused by memory"), false},
        {I::NextGap, M::Analyse, true, "nextGap", QT_TR_NOOP("Explain the next &gap"), "", "G", QT_TR_NOOP("Shows a gap's cause, its chain and what would remove it; the longest gap of the marked cause first"), false},
        {I::PreviousGap, M::Analyse, false, "previousGap", QT_TR_NOOP("Explain the previous gap"), "", "Shift+G", "", false},
        {I::Slack, M::Analyse, false, "slack", QT_TR_NOOP("&Slack of ops"), "", "Ctrl+Shift+S", QT_TR_NOOP("Ops fade by how much later they could start; ops in full colour decide when the step ends"), true},
        {I::WhatIf, M::Analyse, true, "whatIf", QT_TR_NOOP("&What if…"), "", "Ctrl+Shift+W", QT_TR_NOOP("Changes durations, links, microbatches or channels and shows the result simulated below the run"), true},
        {I::Residuals, M::Analyse, false, "residuals", QT_TR_NOOP("&Predicted against measured"), "", "Ctrl+Shift+R", QT_TR_NOOP("Predicted and measured times of each op and of the step"), true},
        {I::LoweredView, M::Analyse, false, "loweredView", QT_TR_NOOP("&Lowered schedule"), "", "Ctrl+Shift+L", QT_TR_NOOP("Sends and receives inserted into the order by a rule, with the resulting messages and channel use"), true},
        {I::DeviceTables, M::Analyse, false, "deviceTables", QT_TR_NOOP("&Kernels and links"), "", "Ctrl+Alt+K", QT_TR_NOOP("What ran on the devices: kernels and copies by op, waiting and transfer by link, and the roofline of each kind of op"), true},
        {I::Compare, M::Analyse, true, "compare", QT_TR_NOOP("&Compare…"), QT_TR_NOOP("Compare"), "Ctrl+K", QT_TR_NOOP("Two to four runs on one axis, what differs and why"), true},
        {I::ComparePlan, M::Analyse, false, "comparePlan", QT_TR_NOOP("Compare with the p&lan"), "", "Ctrl+Alt+P", QT_TR_NOOP("A measured run against its own schedule, simulated with the costs fitted from it: the first op that deviates, and why"), false},
        {I::SwapCompare, M::Analyse, false, "swapCompare", QT_TR_NOOP("S&wap A and B"), "", "", "", false},
        {I::NextCompared, M::Analyse, false, "nextCompared", QT_TR_NOOP("&Other run against A"), "", "Ctrl+Shift+K", QT_TR_NOOP("Chooses the run that the panel and the memory curves compare with A"), false},
        {I::AlignAtOp, M::Analyse, false, "alignAtOp", QT_TR_NOOP("Align at the selected &op"), "", "Ctrl+J", QT_TR_NOOP("Puts the op at the same place on the axis in every run; again: aligns the starts of the steps"), true},
        {I::SetBaseline, M::Analyse, false, "setBaseline", QT_TR_NOOP("Use as &baseline"), "", "Ctrl+Shift+D", QT_TR_NOOP("Compares every run shown from now on with this one, until you clear it"), true},
        {I::Explorer, M::Analyse, false, "explorer", QT_TR_NOOP("E&xplorer"), "", "Ctrl+Shift+E", QT_TR_NOOP("Every library schedule for a shape, costs and a memory cap: memory against time, and over one or two parameters"), true},
        {I::SqlConsole, M::Analyse, true, "sqlConsole", QT_TR_NOOP("S&QL console"), "", ":", QT_TR_NOOP("Queries the run file in SQL and shows rows on the timeline"), true},
        {I::AllSteps, M::View, true, "allSteps", QT_TR_NOOP("All ste&ps on one axis"), "", "Ctrl+Shift+A", QT_TR_NOOP("Every step of the run, with a line at the start of each; again: a single step"), true},
        {I::ChooseSteps, M::View, false, "chooseSteps", QT_TR_NOOP("Choose s&teps…"), "", "", QT_TR_NOOP("A range of steps on one axis"), false},
        {I::PreviousStep, M::Analyse, true, "previousStep", QT_TR_NOOP("&Previous step"), "", "Ctrl+PgUp", "", false},
        {I::NextStep, M::Analyse, false, "nextStep", QT_TR_NOOP("&Next step"), "", "Ctrl+PgDown", "", false},

        {I::Lessons, M::Learn, false, "lessons", QT_TR_NOOP("&Lessons…"), QT_TR_NOOP("Lessons"), "Ctrl+Shift+N", QT_TR_NOOP("Eighteen questions, each answered by hand and by a real run on this computer"), false},
        {I::OpenLesson, M::Learn, false, "openLesson", QT_TR_NOOP("Open a lesson &file…"), "", "", QT_TR_NOOP("Your own lesson or a teacher's (.md)"), false},
        {I::NextLessonStep, M::Learn, false, "nextLessonStep", QT_TR_NOOP("N&ext step of the lesson"), "", "Ctrl+Alt+Right", QT_TR_NOOP("Available when the step's goal is met"), false},
        {I::PreviousLessonStep, M::Learn, false, "previousLessonStep", QT_TR_NOOP("&Previous step of the lesson"), "", "Ctrl+Alt+Left", "", false},
        {I::LessonPane, M::Learn, false, "lessonPane", QT_TR_NOOP("Lesson or &canvas"), "", "F6", QT_TR_NOOP("Moves the focus to the lesson's panel, or back to the canvas"), false},
        {I::LessonHint, M::Learn, false, "lessonHint", QT_TR_NOOP("&Hint"), "", "Ctrl+Alt+H", QT_TR_NOOP("First a pointer, then the principle, then one move"), false},
        {I::LeaveLesson, M::Learn, false, "leaveLesson", QT_TR_NOOP("Lea&ve the lesson"), "", "", QT_TR_NOOP("Your progress is kept"), false},
        {I::Glossary, M::Learn, true, "glossary", QT_TR_NOOP("&Glossary"), "", "Ctrl+Alt+G", QT_TR_NOOP("Every term on screen, and what other tools call it"), true},
        {I::ExplainTerm, M::Learn, false, "explainTerm", QT_TR_NOOP("E&xplain the focused item"), "", "Shift+F1", QT_TR_NOOP("Explains the terms in the label under the pointer or with the focus"), false},
        {I::Play, M::Learn, true, "play", QT_TR_NOOP("Pla&y"), "", "P", QT_TR_NOOP("Half a second per unit; slower when something happens for the first time, faster where a pattern repeats"), true},
        {I::NextBeat, M::Learn, false, "nextBeat", QT_TR_NOOP("&Next beat"), "", "Space", QT_TR_NOOP("Ops that start together are one beat; the first press goes to the first beat"), false},
        {I::PreviousBeat, M::Learn, false, "previousBeat", QT_TR_NOOP("Pre&vious beat"), "", "Shift+Space", "", false},
        {I::NextMoment, M::Learn, false, "nextMoment", QT_TR_NOOP("Next &interesting beat"), "", "N", QT_TR_NOOP("The next first occurrence, gap of half an op, peak or change of pattern"), false},
        {I::Pace1, M::Learn, true, "pace1", QT_TR_NOOP("Pace × &1"), "", "1", "", true},
        {I::Pace2, M::Learn, false, "pace2", QT_TR_NOOP("Pace × &2"), "", "2", "", true},
        {I::Pace3, M::Learn, false, "pace3", QT_TR_NOOP("Pace × &4"), "", "3", "", true},
        {I::Pace4, M::Learn, false, "pace4", QT_TR_NOOP("Pace × &8"), "", "4", "", true},
        {I::ReducedMotion, M::Learn, true, "reducedMotion", QT_TR_NOOP("&Reduced motion"), "", "", QT_TR_NOOP("Playback jumps from beat to beat, without moving messages"), true},

        {I::Keys, M::Help, false, "keys", QT_TR_NOOP("&Keys"), "", "?|F1", QT_TR_NOOP("Shows every shortcut"), false},
        {I::KeysPerfetto, M::Help, true, "keysPerfetto", QT_TR_NOOP("Keys as in &Perfetto"), "", "", "", true},
        {I::KeysNsight, M::Help, false, "keysNsight", QT_TR_NOOP("Keys as in &Nsight"), "", "", "", true},
        {I::KeysTracy, M::Help, false, "keysTracy", QT_TR_NOOP("Keys as in &Tracy"), "", "", "", true},
        {I::About, M::Help, true, "about", QT_TR_NOOP("&About Stagewright"), "", "", "", false},
    };
    return table;
}

Actions::Actions(QWidget* window) : QObject(window), m_window(window)
{
    for (const ActionEntry& entry : table()) {
        m_actions[entry.id] = make(entry);
        m_all.push_back({entry, m_actions[entry.id]});
    }
}

QAction* Actions::make(const ActionEntry& entry)
{
    auto* action = new QAction(tr(entry.text), m_window);
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
    m_window->addAction(action);
    return action;
}

QAction* Actions::add(const ActionEntry& entry, ActionId after)
{
    QAction* action = make(entry);
    auto place = std::find_if(m_all.begin(), m_all.end(), [&](const Listed& one) { return one.entry.id == after; });
    if (place != m_all.end()) ++place;
    m_all.insert(place, {entry, action});
    return action;
}

QString Actions::buttonText(ActionId id)
{
    for (const ActionEntry& entry : table())
        if (entry.id == id) return *entry.button != '\0' ? tr(entry.button) : tr(entry.text).remove(QLatin1Char('&'));
    return {};
}

} // namespace stagewright
