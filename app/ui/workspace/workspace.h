// Workspace: all that a feature sees of its window: the runs, what is shown, the view, the actions, the banner,
// background work, room for what it draws, and what other features offer. It owns the features. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include <QMainWindow>
#include <QObject>

#include "app/ui/runs/run_library.h"
#include "app/ui/workspace/actions.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/room.h"
#include "app/ui/workspace/shown.h"
#include "app/ui/workspace/views.h"
#include "widgets/job.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

struct Theme;

class Workspace : public QObject {
    Q_OBJECT
public:
    Workspace(QMainWindow& window, std::vector<ActionEntry> actions);
    ~Workspace() override; // features go before what they refer to, the last made first

    RunLibrary* library() { return m_library; }
    RunsModel* runs() { return m_library->model(); }
    ViewState* viewState() { return m_state; }
    Views& views() { return m_views; }
    Shown& shown() { return m_shown; }
    Room& room() { return m_room; }
    QMainWindow* window() { return &m_room.window(); } // parent of dialogs
    Actions& actions() { return *m_actions; }
    Banner* banner() { return m_banner; }
    Jobs& jobs() { return m_jobs; }
    const Theme& theme() const { return *m_theme; }
    void setTheme(const Theme& theme); // of this window's views

    void add(Feature* feature); // it belongs to the workspace from now on
    const std::vector<Feature*>& features() const { return m_features; }
    // The feature of this type, or the one that offers this interface (offers.h); null: none yet, or none any more.
    template <typename T>
    T* feature() const
    {
        for (Feature* one : m_features)
            if (auto* found = dynamic_cast<T*>(one)) return found;
        return nullptr;
    }
    bool settled() const;  // nothing is being read, computed or recorded
    void refreshActions(); // every feature enables its own
    void refreshCaptions();

signals:
    void themeChanged();
    void actionsRefreshed();
    void captionsChanged();                   // title and status bar
    void laidOut();                           // every feature has its place
    void closing();                           // the window is about to close
    void fileWritten(const QString& file);    // by this window: not a change from outside
    void scheduleOpened(const QString& file); // a CSV, as a run in memory
    void restartAsked();                      // of the program
    // of this window, or of the program if that is under way
    void closeAsked();
    void closeRefused();                                              // it asked, and the answer was no
    void runMenuOpening(QMenu* menu, const stagewright::RunRef& ref); // entries about windows are added

private:
    void buildViews();
    Actions* m_actions;
    RunLibrary* m_library;
    ViewState* m_state;
    Room m_room;
    Views m_views;
    Banner* m_banner;
    Jobs m_jobs;
    Shown m_shown;
    const Theme* m_theme;
    std::vector<Feature*> m_features;
};

} // namespace stagewright
