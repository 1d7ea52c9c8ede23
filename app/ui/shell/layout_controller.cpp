#include "app/ui/shell/layout_controller.h"

#include <QInputDialog>
#include <QMenu>
#include <QSettings>
#include <QSplitter>
#include <QStatusBar>

#include "app/ui/shell/main_window.h"

namespace stagewright {
namespace {

constexpr auto group = "layouts";
constexpr ActionId switches[] = {ActionId::RunsList, ActionId::SidePanel, ActionId::Memory, ActionId::CommTracks, ActionId::CriticalPath};

QString nameOf(ActionId id)
{
    for (const ActionEntry& entry : Actions::table())
        if (entry.id == id) return QString::fromLatin1(entry.name);
    return {};
}

} // namespace

LayoutController::LayoutController(MainWindow& window) : QObject(&window), m_window(window), m_standard(current())
{
    connect(window.menu(MenuId::Layouts), &QMenu::aboutToShow, this, &LayoutController::fillMenu);
    connect(window.actions()[ActionId::SaveLayout], &QAction::triggered, this, &LayoutController::askName);
    connect(window.actions()[ActionId::ResetLayout], &QAction::triggered, this, &LayoutController::reset);
}

QVariantMap LayoutController::current() const
{
    QVariantMap layout{{QStringLiteral("docks"), m_window.saveState()},
                       {QStringLiteral("columns"), m_window.columns()->saveState()},
                       {QStringLiteral("rows"), m_window.rows()->saveState()}};
    for (const ActionId id : switches) layout[nameOf(id)] = m_window.actions()[id]->isChecked();
    return layout;
}

void LayoutController::set(const QVariantMap& layout)
{
    for (const ActionId id : switches) {
        QAction* action = m_window.actions()[id];
        if (layout.contains(nameOf(id)) && layout.value(nameOf(id)).toBool() != action->isChecked()) {
            const bool enabled = action->isEnabled();
            action->setEnabled(true); // also while nothing is open
            action->trigger();
            action->setEnabled(enabled);
        }
    }
    m_window.restoreState(layout.value(QStringLiteral("docks")).toByteArray());
    m_window.columns()->restoreState(layout.value(QStringLiteral("columns")).toByteArray());
    m_window.rows()->restoreState(layout.value(QStringLiteral("rows")).toByteArray());
}

QStringList LayoutController::names() const
{
    QSettings settings;
    settings.beginGroup(QLatin1String(group));
    QStringList found;
    for (const QString& key : settings.childKeys()) found << QString::fromUtf8(QByteArray::fromPercentEncoding(key.toLatin1(), '_'));
    found.sort(Qt::CaseInsensitive);
    return found;
}

static QString keyOf(const QString& name) { return QLatin1String(group) + QLatin1Char('/') + QString::fromLatin1(name.toUtf8().toPercentEncoding({}, "_", '_')); }

void LayoutController::save(const QString& name) { QSettings().setValue(keyOf(name), current()); }

bool LayoutController::apply(const QString& name)
{
    const QVariant layout = QSettings().value(keyOf(name));
    if (!layout.isValid()) return false;
    set(layout.toMap());
    return true;
}

void LayoutController::remove(const QString& name) { QSettings().remove(keyOf(name)); }

void LayoutController::reset() { set(m_standard); }

void LayoutController::askName()
{
    bool ok = false;
    const QString name = QInputDialog::getText(&m_window, tr("Save this layout"), tr("Name"), QLineEdit::Normal, {}, &ok).trimmed();
    if (!ok || name.isEmpty()) return;
    save(name);
    m_window.statusBar()->showMessage(tr("Layout “%1” saved").arg(name), 4000);
}

void LayoutController::fillMenu()
{
    QMenu& menu = *m_window.menu(MenuId::Layouts);
    menu.clear();
    for (const QString& name : names()) menu.addAction(QString(name).replace(QLatin1Char('&'), QStringLiteral("&&")), this, [this, name] { apply(name); });
    if (!menu.isEmpty()) menu.addSeparator();
    menu.addAction(m_window.actions()[ActionId::SaveLayout]);
    menu.addAction(m_window.actions()[ActionId::ResetLayout]);
    if (names().isEmpty()) return;
    QMenu* remove = menu.addMenu(tr("Remove"));
    for (const QString& name : names()) remove->addAction(QString(name).replace(QLatin1Char('&'), QStringLiteral("&&")), this, [this, name] { this->remove(name); });
}

} // namespace stagewright
