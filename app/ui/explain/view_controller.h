// ViewController: the actions on the views: fitting, going back, what they draw, the side panel, and the menu of an op.
#pragma once

#include <map>

#include <QPoint>
#include <QString>

#include "app/ui/workspace/feature.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

class ViewController : public Feature {
    Q_OBJECT
public:
    explicit ViewController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    bool escape() override; // clears the selection

private:
    void spanMenu(const QPoint& at, SpanRef ref);
    void showPanels(); // at the right, if they are wanted
    void refreshActions();
    void shareRoom();   // by timeline and charts, after a dock was opened or closed
    void keepPlace();   // of the file shown
    void openAtPlace(); // another file is shown: where it was left, or at its start

    struct Place {
        double scroll = 0;
        int panel = 0; // of the side panel
        QString find;
    };
    std::map<QString, Place> m_places; // by file
    QString m_file;                    // whose run is shown
    double m_share = 0;                // of the timeline, as the user set it; 0: the usual
};

} // namespace stagewright
