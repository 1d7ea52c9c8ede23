#include "app/ui/shell/key_page.h"

#include <algorithm>

#include <QDialog>
#include <QGridLayout>
#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>

#include "app/ui/workspace/workspace.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

void showKeys(Workspace& workspace)
{
    QMainWindow* window = workspace.window();
    const TimelineView* timeline = workspace.views().timeline;
    const auto tr = [](const char* text) { return Workspace::tr(text); };
    if (auto* open = window->findChild<QDialog*>(QStringLiteral("keyMap"))) {
        open->close();
        return;
    }
    auto* dialog = new QDialog(window);
    dialog->setObjectName(QStringLiteral("keyMap"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Keys"));
    auto* layout = new QVBoxLayout(dialog);
    layout->setContentsMargins(20, 16, 20, 16);
    layout->setSpacing(10);
    const QString maps[] = {tr("Perfetto"), tr("Nsight Systems"), tr("Tracy")};
    layout->addWidget(makeLabel(tr("Keys as in %1; change them in Preferences (Ctrl+,)").arg(maps[static_cast<int>(timeline->keyMap())]), "title", dialog));
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
    for (const KeyBinding& binding : keyMap(timeline->keyMap())) {
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
    for (const auto& [entry, action] : workspace.actions().all()) {
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
    const int high = std::max(12, (window->height() - 170) / (QFontMetrics(fontOf(FontRole::Body)).height() + grid->verticalSpacing()));
    const int columns = (static_cast<int>(lines.size()) + high - 1) / high, rows = (static_cast<int>(lines.size()) + columns - 1) / columns;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const int row = static_cast<int>(i) % rows, column = 2 * (static_cast<int>(i) / rows);
        grid->addWidget(makeLabel(lines[i].first, "strong", page), row, column);
        grid->addWidget(makeLabel(lines[i].second, "secondary", page), row, column + 1);
    }
    page->adjustSize();
    const QSize wanted = page->sizeHint() + QSize(60, 90);
    dialog->resize(wanted.boundedTo(window->size() - QSize(40, 40)));
    dialog->show();
}

} // namespace stagewright
