// BookmarksController: the nine bookmarks of a window: run, step, view and selection. Stored in the run file; bookmarks
// of in-memory runs are kept in the window.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <QObject>

#include "app/ui/workspace/feature.h"
#include "traces/run/notes.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

class BookmarksController : public Feature {
    Q_OBJECT
public:
    explicit BookmarksController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    void set(int slot);                                               // 1 … 9, from the current view
    void jump(int slot);                                              // in the file shown, or else in another open file
    std::optional<std::pair<QString, Bookmark>> find(int slot) const; // file and place

private:
    void load(const QString& file);
    void apply(const Bookmark& bookmark);
    void refresh();
    std::vector<std::pair<QString, std::vector<Bookmark>>> m_known; // by file
    std::optional<std::pair<RunRef, Bookmark>> m_later;             // applied once its run is shown
};

} // namespace stagewright
