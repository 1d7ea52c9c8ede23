// LayoutController: named window layouts: which lists and panels are shown, their sizes, which switches are on. Stored in the
// settings, shared by all windows.
#pragma once

#include <QObject>
#include <QStringList>
#include <QVariantMap>

namespace stagewright {

class MainWindow;

class LayoutController : public QObject {
    Q_OBJECT
public:
    explicit LayoutController(MainWindow& window); // takes the current layout as the default
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
    MainWindow& m_window;
    QVariantMap m_standard;
};

} // namespace stagewright
