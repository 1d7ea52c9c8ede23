// LayoutController: arrangements of a window under names: which lists and panels are shown, how large, which switches are
// on. Kept in the settings, for every window.
#pragma once

#include <QObject>
#include <QStringList>
#include <QVariantMap>

namespace stagewright {

class MainWindow;

class LayoutController : public QObject {
    Q_OBJECT
public:
    explicit LayoutController(MainWindow& window); // remembers the arrangement it finds as the standard one
    QStringList names() const;
    void save(const QString& name);
    bool apply(const QString& name); // false: there is none
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
