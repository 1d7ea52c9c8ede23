#include "app/ui/shell/layout_controller.h"

#include <QInputDialog>
#include <QMenu>
#include <QSettings>
#include <QSplitter>
#include <QStatusBar>

#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

constexpr auto group = "layouts";
constexpr ActionId switches[] = {"runsList", "sidePanel", "memory", "commTracks", "criticalPath"};

QString nameOf(ActionId id) { return QString::fromLatin1(id); }

} // namespace

std::vector<ActionEntry> LayoutController::actionTable()
{
    return {
        item("fullScreen", ActionGroup::ViewPanels, u"F&ull screen"_s, "F11",
             u"The window over the whole screen; again: as before"_s, {.checkable = true, .needs = Needs::Nothing}),
        item("saveLayout", ActionGroup::Layouts, u"&Save this layout…"_s, {},
             u"Saves lists, panels, their sizes and switches under a name"_s),
        item("resetLayout", ActionGroup::Layouts, u"&Reset the layout"_s, {},
             u"Restores the default lists and panels"_s),
    };
}

LayoutController::LayoutController(Workspace& workspace) : Feature(workspace)
{
    connect(&workspace, &Workspace::laidOut, this, [this] { m_standard = current(); });
    connect(workspace.room().menu(MenuId::Layouts), &QMenu::aboutToShow, this, &LayoutController::fillMenu);
    connect(workspace.actions()["fullScreen"], &QAction::triggered, this, [this](bool on) {
        m_workspace.window()->setWindowState(on ? m_workspace.window()->windowState() | Qt::WindowFullScreen
                                                : m_workspace.window()->windowState() & ~Qt::WindowFullScreen);
    });
    connect(workspace.actions()["saveLayout"], &QAction::triggered, this, &LayoutController::askName);
    connect(workspace.actions()["resetLayout"], &QAction::triggered, this, &LayoutController::reset);
}

QVariantMap LayoutController::current() const
{
    QVariantMap layout{{u"docks"_s, m_workspace.window()->saveState()},
                       {u"columns"_s, m_workspace.room().columns()->saveState()},
                       {u"rows"_s, m_workspace.room().rows()->saveState()}};
    for (const ActionId id : switches) layout[nameOf(id)] = m_workspace.actions()[id]->isChecked();
    return layout;
}

void LayoutController::set(const QVariantMap& layout)
{
    for (const ActionId id : switches) {
        QAction* action = m_workspace.actions()[id];
        if (layout.contains(nameOf(id)) && layout.value(nameOf(id)).toBool() != action->isChecked()) {
            const bool enabled = action->isEnabled();
            action->setEnabled(true); // also while nothing is open
            action->trigger();
            action->setEnabled(enabled);
        }
    }
    m_workspace.window()->restoreState(layout.value(u"docks"_s).toByteArray());
    m_workspace.room().columns()->restoreState(layout.value(u"columns"_s).toByteArray());
    m_workspace.room().rows()->restoreState(layout.value(u"rows"_s).toByteArray());
}

QStringList LayoutController::names() const
{
    QSettings settings;
    settings.beginGroup(QLatin1String(group));
    QStringList found;
    for (const QString& key : settings.childKeys())
        found << QString::fromUtf8(QByteArray::fromPercentEncoding(key.toLatin1(), '_'));
    found.sort(Qt::CaseInsensitive);
    return found;
}

static QString keyOf(const QString& name)
{
    return QLatin1String(group) + u'/' + QString::fromLatin1(name.toUtf8().toPercentEncoding({}, "_", '_'));
}

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
    const QString name =
        QInputDialog::getText(m_workspace.window(), u"Save this layout"_s, u"Name"_s, QLineEdit::Normal, {}, &ok)
            .trimmed();
    if (!ok || name.isEmpty()) return;
    save(name);
    m_workspace.room().tell(u"Layout “%1” saved"_s.arg(name), 4000);
}

void LayoutController::fillMenu()
{
    QMenu& menu = *m_workspace.room().menu(MenuId::Layouts);
    menu.clear();
    for (const QString& name : names())
        menu.addAction(QString(name).replace(u'&', u"&&"_s), this, [this, name] { apply(name); });
    if (!menu.isEmpty()) menu.addSeparator();
    menu.addAction(m_workspace.actions()["saveLayout"]);
    menu.addAction(m_workspace.actions()["resetLayout"]);
    if (names().isEmpty()) return;
    QMenu* remove = menu.addMenu(u"Remove"_s);
    for (const QString& name : names())
        remove->addAction(QString(name).replace(u'&', u"&&"_s), this, [this, name] { this->remove(name); });
}

FeatureEntry layoutFeature() { return featureEntry<LayoutController>(); }

} // namespace stagewright
