// BookmarksController: nine places one window can go to: run, step, view and selection. Kept in the run file; of runs in
// memory in the window.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <QObject>

#include "traces/notes.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

class MainWindow;

class BookmarksController : public QObject {
    Q_OBJECT
public:
    explicit BookmarksController(MainWindow& window);
    void set(int slot);  // 1 … 9, of what is shown
    void jump(int slot); // that of the file shown, else of another open file
    std::optional<std::pair<QString, Bookmark>> find(int slot) const; // file and place

signals:
    void wrote(const QString& file);

private:
    void load(const QString& file);
    void apply(const Bookmark& bookmark);
    void refresh();
    MainWindow& m_window;
    std::vector<std::pair<QString, std::vector<Bookmark>>> m_known; // by file
    std::optional<std::pair<RunRef, Bookmark>> m_later; // once its run is shown
};

} // namespace stagewright
