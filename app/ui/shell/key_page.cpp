#include "app/ui/shell/key_page.h"

#include <algorithm>
#include <memory>

#include <QDialog>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QVBoxLayout>

#include "app/ui/workspace/workspace.h"
#include "widgets/readable.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

struct Group {
    QString title;
    std::vector<std::pair<QString, QString>> lines; // keys, what they do
};

QString textOf(const std::vector<QKeySequence>& keys)
{
    QStringList texts;
    for (const QKeySequence& key : keys) texts << key.toString(QKeySequence::NativeText);
    return texts.join(QStringLiteral("  "));
}

// Keys of the views by what they are for, the mouse, then the menus' keys, menu by menu.
std::vector<Group> groupsOf(Actions& actions, KeyMapName map)
{
    const auto tr = [](const char* text) { return Workspace::tr(text); };
    Group zoom{tr("Zoom and pan"), {}}, walk{tr("From op to op"), {}};
    QList<QKeySequence> shown; // a menu's action with a key of the map does the same and is not listed twice
    for (const KeyBinding& binding : keyMap(map)) {
        for (const QKeySequence& key : binding.keys) shown << key;
        (binding.action < ViewAction::PreviousOp ? zoom : walk).lines.emplace_back(textOf(binding.keys), binding.title);
    }
    Group mouse{tr("Mouse"),
                {{tr("Ctrl+wheel"), tr("Zoom at the pointer")},
                 {tr("Shift+wheel"), tr("Pan")},
                 {tr("Left drag"), tr("Select an area; Ctrl adds")},
                 {tr("Shift+drag"), tr("Pan")},
                 {tr("Middle drag"), tr("Zoom to the region")},
                 {tr("Ctrl+click a run"), tr("Compare it with the runs shown; again: remove it")}}};
    const std::pair<MenuId, const char*> menus[] = {
        {MenuId::File, QT_TRANSLATE_NOOP("stagewright::Workspace", "File")},
        {MenuId::Edit, QT_TRANSLATE_NOOP("stagewright::Workspace", "Edit")},
        {MenuId::View, QT_TRANSLATE_NOOP("stagewright::Workspace", "View")},
        {MenuId::Rows, QT_TRANSLATE_NOOP("stagewright::Workspace", "Rows")},
        {MenuId::Bookmarks, QT_TRANSLATE_NOOP("stagewright::Workspace", "Bookmarks")},
        {MenuId::Order, QT_TRANSLATE_NOOP("stagewright::Workspace", "Order of ops")},
        {MenuId::Schedule, QT_TRANSLATE_NOOP("stagewright::Workspace", "Schedule")},
        {MenuId::Analyse, QT_TRANSLATE_NOOP("stagewright::Workspace", "Analyse")},
        {MenuId::Learn, QT_TRANSLATE_NOOP("stagewright::Workspace", "Learn")},
        {MenuId::Help, QT_TRANSLATE_NOOP("stagewright::Workspace", "Help")}};
    std::vector<Group> groups{zoom, walk, mouse};
    for (const auto& [menu, title] : menus) groups.push_back({tr(title), {}});
    Group others{tr("More"), {}};
    for (const auto& [entry, action] : actions.all()) {
        const auto* at = std::find_if(std::begin(menus), std::end(menus),
                                      [id = menuOf(entry.group)](const auto& one) { return one.first == id; });
        Group& group = at == std::end(menus) ? others : groups[3 + static_cast<std::size_t>(at - std::begin(menus))];
        if (entry.group == ActionGroup::Bookmarks) { // nine of the same kind
            if (entry.id == "bookmarkJump1") group.lines.emplace_back(tr("Ctrl+1 … 9"), tr("Go to a bookmark"));
            if (entry.id == "bookmarkSet1") group.lines.emplace_back(tr("Ctrl+Shift+1 … 9"), tr("Set a bookmark"));
            continue;
        }
        const QList<QKeySequence> own = action->shortcuts();
        if (std::all_of(own.begin(), own.end(), [&](const QKeySequence& key) { return shown.contains(key); })) continue;
        group.lines.emplace_back(textOf({own.begin(), own.end()}),
                                 action->text().remove(QLatin1Char('&')).remove(QStringLiteral("…")));
    }
    groups.push_back(others);
    std::erase_if(groups, [](const Group& group) { return group.lines.empty(); });
    return groups;
}

struct ShownLine {
    QWidget *keys, *what;
    QString text; // of both
};
struct ShownGroup {
    QWidget* box;
    std::vector<ShownLine> lines;
};

} // namespace

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
    auto* head = new QHBoxLayout;
    head->addWidget(
        makeLabel(
            tr("Keys as in %1; change them in Preferences (Ctrl+,)").arg(maps[static_cast<int>(timeline->keyMap())]),
            "title", dialog),
        1);
    auto* find = new QLineEdit(dialog);
    find->setPlaceholderText(tr("Find a key or what it does"));
    find->setAccessibleName(tr("Find a key or what it does"));
    find->setClearButtonEnabled(true);
    find->setFixedWidth(230);
    head->addWidget(find);
    layout->addLayout(head);
    auto* scroll = new QScrollArea(dialog);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setAccessibleName(tr("Keys"));
    auto* page = new QWidget(scroll);
    page->setObjectName(QStringLiteral("panelBody"));
    auto* columns = new QHBoxLayout(page);
    columns->setContentsMargins(16, 14, 16, 14);
    columns->setSpacing(28);
    scroll->setWidget(page);
    layout->addWidget(scroll, 1);

    const std::vector<Group> groups = groupsOf(workspace.actions(), timeline->keyMap());
    // In as many columns as the window's height needs, each group whole.
    const int lineHeight = QFontMetrics(fontOf(FontRole::Body)).height() + 4;
    std::size_t lines = 0;
    for (const Group& group : groups) lines += group.lines.size() + 2;
    const int high = std::max(14, (window->height() - 190) / lineHeight);
    const int wide = std::max(1, (window->width() - 100) / textPixels(355)); // columns that fit
    const int count =
        std::clamp(static_cast<int>((lines + static_cast<std::size_t>(high) - 1) / static_cast<std::size_t>(high)), 1,
                   std::min(4, wide));
    const std::size_t aim = (lines + static_cast<std::size_t>(count) - 1) / static_cast<std::size_t>(count);
    auto shown = std::make_shared<std::vector<ShownGroup>>();
    QVBoxLayout* column = nullptr;
    std::size_t filled = 0;
    for (const Group& group : groups) {
        if (column == nullptr || (filled + group.lines.size() / 2 > aim && columns->count() < count)) {
            if (column != nullptr) column->addStretch(1);
            column = new QVBoxLayout;
            column->setSpacing(14);
            columns->addLayout(column, 1);
            filled = 0;
        }
        filled += group.lines.size() + 2;
        auto* box = new QWidget(page);
        auto* grid = new QGridLayout(box);
        grid->setContentsMargins(0, 0, 0, 0);
        grid->setHorizontalSpacing(14);
        grid->setVerticalSpacing(4);
        grid->setColumnStretch(1, 1);
        grid->setColumnMinimumWidth(
            0, QFontMetrics(fontOf(FontRole::Strong)).horizontalAdvance(QStringLiteral("Ctrl+Shift+Down")));
        grid->addWidget(makeLabel(group.title, "secondary", box), 0, 0, 1, 2);
        ShownGroup one{box, {}};
        for (const auto& [keys, what] : group.lines) {
            const int row = grid->rowCount();
            QLabel *left = makeLabel(keys, "strong", box), *right = makeLabel(what, "value", box);
            grid->addWidget(left, row, 0, Qt::AlignTop);
            grid->addWidget(right, row, 1, Qt::AlignTop);
            one.lines.push_back({left, right, keys + QLatin1Char(' ') + what + QLatin1Char(' ') + group.title});
        }
        shown->push_back(std::move(one));
        column->addWidget(box);
    }
    if (column != nullptr) column->addStretch(1);
    auto* none = makeLabel(tr("No key does that. Try another word, or the command palette (Ctrl+Shift+P)."),
                           "secondary", dialog);
    none->hide();
    layout->addWidget(none);
    QObject::connect(find, &QLineEdit::textChanged, dialog, [shown, none](const QString& text) {
        const QStringList words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
        bool any = false;
        for (const ShownGroup& group : *shown) {
            bool some = false;
            for (const ShownLine& line : group.lines) {
                const bool fits = std::all_of(words.begin(), words.end(), [&](const QString& word) {
                    return line.text.contains(word, Qt::CaseInsensitive);
                });
                line.keys->setVisible(fits);
                line.what->setVisible(fits);
                some = some || fits;
            }
            group.box->setVisible(some);
            any = any || some;
        }
        none->setVisible(!any);
    });
    page->adjustSize();
    const QSize wanted = page->sizeHint() + QSize(60, 100);
    dialog->resize(wanted.boundedTo(window->size() - QSize(40, 40)));
    dialog->show();
    find->setFocus();
}

} // namespace stagewright
