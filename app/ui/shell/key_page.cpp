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
#include "widgets/literals.h"
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
    return texts.join(u"  "_s);
}

// Keys of the views by what they are for, the mouse, then the menus' keys, menu by menu.
std::vector<Group> groupsOf(Actions& actions, KeyMapName map)
{
    Group zoom{u"Zoom and pan"_s, {}}, walk{u"From op to op"_s, {}};
    QList<QKeySequence> shown; // a menu's action with a key of the map does the same and is not listed twice
    for (const KeyBinding& binding : keyMap(map)) {
        for (const QKeySequence& key : binding.keys) shown << key;
        (binding.action < ViewAction::PreviousOp ? zoom : walk).lines.emplace_back(textOf(binding.keys), binding.title);
    }
    Group mouse{u"Mouse"_s,
                {{u"Ctrl+wheel"_s, u"Zoom at the pointer"_s},
                 {u"Shift+wheel"_s, u"Pan"_s},
                 {u"Left drag"_s, u"Select an area; Ctrl adds"_s},
                 {u"Shift+drag"_s, u"Pan"_s},
                 {u"Middle drag"_s, u"Zoom to the region"_s},
                 {u"Ctrl+click a run"_s, u"Compare it with the runs shown; again: remove it"_s}}};
    const std::pair<MenuId, const char*> menus[] = {{MenuId::File, "File"},
                                                    {MenuId::Edit, "Edit"},
                                                    {MenuId::View, "View"},
                                                    {MenuId::Rows, "Rows"},
                                                    {MenuId::Bookmarks, "Bookmarks"},
                                                    {MenuId::Schedule, "Schedule"},
                                                    {MenuId::Ops, "Change ops"},
                                                    {MenuId::OpChoice, "Select ops"},
                                                    {MenuId::Analyse, "Analyse"},
                                                    {MenuId::Learn, "Learn"},
                                                    {MenuId::Help, "Help"}};
    std::vector<Group> groups{zoom, walk, mouse};
    for (const auto& [menu, title] : menus) groups.push_back({QString::fromUtf8(title), {}});
    Group others{u"More"_s, {}};
    for (const auto& [entry, action] : actions.all()) {
        const auto* at = std::find_if(std::begin(menus), std::end(menus),
                                      [id = menuOf(entry.group)](const auto& one) { return one.first == id; });
        Group& group = at == std::end(menus) ? others : groups[3 + static_cast<std::size_t>(at - std::begin(menus))];
        if (entry.group == ActionGroup::Bookmarks) { // nine of the same kind
            if (entry.id == "bookmarkJump1") group.lines.emplace_back(u"Ctrl+1 … 9"_s, u"Go to a bookmark"_s);
            if (entry.id == "bookmarkSet1") group.lines.emplace_back(u"Ctrl+Shift+1 … 9"_s, u"Set a bookmark"_s);
            continue;
        }
        const QList<QKeySequence> own = action->shortcuts();
        if (std::all_of(own.begin(), own.end(), [&](const QKeySequence& key) { return shown.contains(key); })) continue;
        group.lines.emplace_back(textOf({own.begin(), own.end()}), action->text().remove(u'&').remove(u"…"_s));
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
    if (auto* open = window->findChild<QDialog*>(u"keyMap"_s)) {
        open->close();
        return;
    }
    auto* dialog = new QDialog(window);
    dialog->setObjectName(u"keyMap"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(u"Keys"_s);
    auto* layout = new QVBoxLayout(dialog);
    layout->setContentsMargins(20, 16, 20, 16);
    layout->setSpacing(10);
    const QString maps[] = {u"Perfetto"_s, u"Nsight Systems"_s, u"Tracy"_s};
    auto* head = new QHBoxLayout;
    head->addWidget(makeLabel(u"Keys as in %1; change them in Preferences (Ctrl+,)"_s.arg(
                                  maps[static_cast<int>(timeline->input().keyMap())]),
                              "title", dialog),
                    1);
    auto* find = new QLineEdit(dialog);
    find->setPlaceholderText(u"Find a key or what it does"_s);
    find->setAccessibleName(u"Find a key or what it does"_s);
    find->setClearButtonEnabled(true);
    find->setFixedWidth(230);
    head->addWidget(find);
    layout->addLayout(head);
    auto* scroll = new QScrollArea(dialog);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setAccessibleName(u"Keys"_s);
    auto* page = new QWidget(scroll);
    page->setObjectName(u"panelBody"_s);
    auto* columns = new QHBoxLayout(page);
    columns->setContentsMargins(16, 14, 16, 14);
    columns->setSpacing(28);
    scroll->setWidget(page);
    layout->addWidget(scroll, 1);

    const std::vector<Group> groups = groupsOf(workspace.actions(), timeline->input().keyMap());
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
        grid->setColumnMinimumWidth(0, QFontMetrics(fontOf(FontRole::Strong)).horizontalAdvance(u"Ctrl+Shift+Down"_s));
        grid->addWidget(makeLabel(group.title, "secondary", box), 0, 0, 1, 2);
        ShownGroup one{box, {}};
        for (const auto& [keys, what] : group.lines) {
            const int row = grid->rowCount();
            QLabel *left = makeLabel(keys, "strong", box), *right = makeLabel(what, "value", box);
            grid->addWidget(left, row, 0, Qt::AlignTop);
            grid->addWidget(right, row, 1, Qt::AlignTop);
            one.lines.push_back({left, right, keys + u' ' + what + u' ' + group.title});
        }
        shown->push_back(std::move(one));
        column->addWidget(box);
    }
    if (column != nullptr) column->addStretch(1);
    auto* none =
        makeLabel(u"No key does that. Try another word, or the command palette (Ctrl+Shift+P)."_s, "secondary", dialog);
    none->hide();
    layout->addWidget(none);
    QObject::connect(find, &QLineEdit::textChanged, dialog, [shown, none](const QString& text) {
        const QStringList words = text.split(u' ', Qt::SkipEmptyParts);
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
