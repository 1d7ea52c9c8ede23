// LayoutController: named window layouts: which lists and panels are shown, their sizes, which switches are on. Stored
// in the settings, shared by all windows.
#pragma once

#include <QObject>
#include <QStringList>
#include <QVariantMap>

#include "app/ui/workspace/feature.h"

namespace stagewright {

class LayoutController : public Feature {
    Q_OBJECT
public:
    explicit LayoutController(Workspace& workspace); // the default is the layout when the window is ready
    static std::vector<ActionEntry> actionTable();
    QStringList names() const;
    void save(const QString& name);
    bool apply(const QString& name); // false: no such layout
    void remove(const QString& name);
    void reset();
    QVariantMap current() const;

private:
    void set(const QVariantMap& layout);
    void fillMenu();
    void askName();
    QVariantMap m_standard;
};

} // namespace stagewright
