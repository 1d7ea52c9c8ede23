// LessonLayout: while a lesson is shown, only what its step uses is beside the timeline. Lists, charts, texts, docks
// and the toolbar are put away and come back as they were. What the learner switches on meanwhile stays until the step
// changes. GUI thread only.
#pragma once

#include <map>
#include <vector>

#include <QPointer>
#include <QWidget>

#include "app/ui/workspace/actions.h"

namespace stagewright {

class Workspace;

class LessonLayout {
public:
    explicit LessonLayout(Workspace& workspace) : m_workspace(workspace) {}
    struct Uses { // what a step needs beside the timeline and the panel
        bool memory = false;
        bool text = false; // the order as text
    };
    void show(const Uses& uses); // the first call remembers what there was
    void restore();              // without show(): nothing

private:
    void set(ActionId id, bool on);
    Workspace& m_workspace;
    std::map<ActionId, bool> m_switches; // as they were
    std::vector<QPointer<QWidget>> m_away;
    bool m_active = false;
};

} // namespace stagewright
