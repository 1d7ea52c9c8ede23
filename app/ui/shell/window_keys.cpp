// Keys of the window as a whole, and the page that lists every key.
#include <algorithm>

#include <QAbstractButton>
#include <QComboBox>
#include <QDialog>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QVBoxLayout>

#include "app/ui/notes/notes_controller.h"
#include "app/ui/playback/playback_controller.h"
#include "app/ui/search/search_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "widgets/search/find_field.h"
#include "widgets/style.h"

namespace stagewright {

void MainWindow::keyPressEvent(QKeyEvent* event)
{
    if (event->key() == Qt::Key_Escape) {
        if (m_editor->previewing()) {
            m_editor->cancelPreview();
            m_timeline->setDragFeedback(std::nullopt);
        } else if (m_state->selected().valid() || !m_state->areas().empty()) {
            m_state->clearSelection();
        } else if (m_playback->player()->active()) {
            m_playback->player()->end();
        } else if (m_notes->hasHits()) {
            m_search->clear();
            m_notes->setHits(0, nullptr, noSpan); // those of a query
        } else if (m_gap >= 0) {
            chooseGap(-1);
        } else if (m_cause) {
            chooseCause(std::nullopt);
        } else if (m_banner->isVisible()) {
            m_banner->clear();
        }
        return;
    }
    QMainWindow::keyPressEvent(event);
}

bool MainWindow::event(QEvent* event)
{
    // Space and Return press the focused button or open the focused box, whatever they do elsewhere.
    if (event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const QWidget* focus = focusWidget();
        const bool pressable = qobject_cast<const QAbstractButton*>(focus) != nullptr || qobject_cast<const QComboBox*>(focus) != nullptr;
        const bool presses = key->key() == Qt::Key_Space || key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
        const bool plain = (key->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier)) == 0;
        if (plain && pressable && presses) {
            event->accept();
            return true;
        }
    }
    return QMainWindow::event(event);
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_find && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            find(m_find->text(), key->modifiers().testFlag(Qt::ShiftModifier));
            return true;
        }
        if (key->key() == Qt::Key_Escape) {
            m_timeline->setFocus();
            return true;
        }
    }
    // Single-letter keys of actions must reach a focused text field.
    if (watched == m_find && event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (!key->modifiers().testFlag(Qt::ControlModifier) && !key->modifiers().testFlag(Qt::AltModifier)) {
            event->accept();
            return true;
        }
    }
    return QMainWindow::eventFilter(watched, event);
}

void MainWindow::showKeys()
{
    if (auto* open = findChild<QDialog*>(QStringLiteral("keyMap"))) {
        open->close();
        return;
    }
    auto* dialog = new QDialog(this);
    dialog->setObjectName(QStringLiteral("keyMap"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Keys"));
    auto* layout = new QVBoxLayout(dialog);
    layout->setContentsMargins(20, 16, 20, 16);
    layout->setSpacing(10);
    const QString maps[] = {tr("Perfetto"), tr("Nsight Systems"), tr("Tracy")};
    layout->addWidget(makeLabel(tr("Keys as in %1; change them in Preferences (Ctrl+,)").arg(maps[static_cast<int>(m_timeline->keyMap())]), "title", dialog));
    auto* scroll = new QScrollArea(dialog);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setAccessibleName(tr("Keys"));
    auto* page = new QWidget(scroll);
    page->setObjectName(QStringLiteral("panelBody"));
    auto* grid = new QGridLayout(page);
    grid->setContentsMargins(14, 12, 14, 12);
    grid->setHorizontalSpacing(14);
    grid->setVerticalSpacing(4);
    grid->setAlignment(Qt::AlignTop);
    scroll->setWidget(page);
    layout->addWidget(scroll, 1);
    std::vector<std::pair<QString, QString>> lines;
    auto add = [&](const QString& keys, const QString& what) { lines.emplace_back(keys, what); };
    QList<QKeySequence> shown; // a menu's action with a key of the map does the same and is not listed twice
    for (const KeyBinding& binding : keyMap(m_timeline->keyMap())) {
        QStringList keys;
        for (const QKeySequence& key : binding.keys) {
            keys << key.toString(QKeySequence::NativeText);
            shown << key;
        }
        add(keys.join(QStringLiteral("  ")), binding.title);
    }
    add(tr("Ctrl+wheel"), tr("Zoom at the pointer"));
    add(tr("Shift+wheel"), tr("Pan"));
    add(tr("Left drag"), tr("Select an area; Ctrl adds"));
    add(tr("Shift+drag"), tr("Pan"));
    add(tr("Middle drag"), tr("Zoom to the region"));
    add(tr("Ctrl+click a run"), tr("Compare it with the runs shown, up to four; again: remove it"));
    for (const ActionEntry& entry : Actions::table()) {
        const QAction* action = (*m_actions)[entry.id];
        if (entry.menu == MenuId::Bookmarks) { // nine of the same kind
            if (entry.id == ActionId::BookmarkJump1) add(tr("Ctrl+1 … 9"), tr("Go to a bookmark"));
            if (entry.id == ActionId::BookmarkSet1) add(tr("Ctrl+Shift+1 … 9"), tr("Set a bookmark"));
            continue;
        }
        const QList<QKeySequence> own = action->shortcuts();
        if (std::all_of(own.begin(), own.end(), [&](const QKeySequence& key) { return shown.contains(key); })) continue;
        QStringList keys;
        for (const QKeySequence& key : action->shortcuts())
            keys << key.toString(QKeySequence::NativeText);
        add(keys.join(QStringLiteral("  ")), action->text().remove(QLatin1Char('&')).remove(QStringLiteral("…")));
    }
    // In as many columns as the window's height needs.
    const int high = std::max(12, (height() - 170) / (QFontMetrics(fontOf(FontRole::Body)).height() + grid->verticalSpacing()));
    const int columns = (static_cast<int>(lines.size()) + high - 1) / high, rows = (static_cast<int>(lines.size()) + columns - 1) / columns;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const int row = static_cast<int>(i) % rows, column = 2 * (static_cast<int>(i) / rows);
        grid->addWidget(makeLabel(lines[i].first, "strong", page), row, column);
        grid->addWidget(makeLabel(lines[i].second, "secondary", page), row, column + 1);
    }
    page->adjustSize();
    const QSize wanted = page->sizeHint() + QSize(60, 90);
    dialog->resize(wanted.boundedTo(size() - QSize(40, 40)));
    dialog->show();
}

} // namespace stagewright
