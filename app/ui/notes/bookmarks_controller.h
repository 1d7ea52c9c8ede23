// BookmarksController: the nine bookmarks of a window: run, step, view and selection. Stored in the run file; bookmarks of in-memory
// runs are kept in the window.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <QObject>

#include "traces/run/notes.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

class MainWindow;

class BookmarksController : public QObject {
    Q_OBJECT
public:
    explicit BookmarksController(MainWindow& window);
    void set(int slot);                                               // 1 … 9, from the current view
    void jump(int slot);                                              // in the file shown, or else in another open file
    std::optional<std::pair<QString, Bookmark>> find(int slot) const; // file and place

signals:
    void wrote(const QString& file);

private:
    void load(const QString& file);
    void apply(const Bookmark& bookmark);
    void refresh();
    MainWindow& m_window;
    std::vector<std::pair<QString, std::vector<Bookmark>>> m_known; // by file
    std::optional<std::pair<RunRef, Bookmark>> m_later;             // applied once its run is shown
};

} // namespace stagewright
