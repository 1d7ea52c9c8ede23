// Feature: one part of the window: what it shows, its actions and what it does. It sees the workspace and nothing of
// other features. features.def lists them; the shell makes their actions, then them in that order, lays out their parts
// and destroys them in the reverse order.
#pragma once

#include <vector>

#include <QObject>

#include "app/ui/workspace/actions.h"
#include "app/ui/workspace/show.h"

class QDockWidget;
class QWidget;

namespace stagewright {

class Workspace;

// What a feature shows beside the views; the shell gives each a place. The widgets belong to the window.
struct FeatureParts {
    struct Dock {
        QDockWidget* dock; // hidden at first
        Qt::DockWidgetArea area = Qt::BottomDockWidgetArea;
        bool tabbed = true; // with the others of the area
    };
    std::vector<Dock> docks{};
    std::vector<QWidget*> pages{};  // in place of the views
    std::vector<QWidget*> panels{}; // in the column at the right, in place of the figures
    QWidget* firstPage = nullptr;   // shown while there is no run
};

class Feature : public QObject {
    Q_OBJECT
public:
    explicit Feature(Workspace& workspace);

    // what it adds to the menus; a feature with actions has its own
    static std::vector<ActionEntry> actionTable() { return {}; }
    static std::vector<ShowEntry> showTable() { return {}; } // and to --show, in the same way

    virtual FeatureParts parts() { return {}; }
    virtual bool settled() const { return true; } // nothing is under way but its jobs, which the workspace counts
    // Esc: takes back the last thing it put over the views; false: there is none
    virtual bool escape() { return false; }
    // false: the window stays; the feature asks, and closes it later if wanted
    virtual bool mayClose() { return true; }
    virtual void closing() {} // the window is about to be destroyed; every feature is still there

protected:
    Workspace& m_workspace;
};

// What a line of features.def stands for: how the feature is made, and what it declares before there is one.
struct FeatureEntry {
    Feature* (*make)(Workspace&); // the workspace owns it, once it is added
    std::vector<ActionEntry> (*actions)();
    std::vector<ShowEntry> (*shows)();
};

template <typename T>
FeatureEntry featureEntry()
{
    return {[](Workspace& workspace) -> Feature* { return new T(workspace); }, &T::actionTable, &T::showTable};
}

} // namespace stagewright
