#include "widgets/table_copy.h"

#include <algorithm>

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QGridLayout>
#include <QHeaderView>
#include <QItemSelectionModel>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QMimeData>
#include <QRegularExpression>
#include <QTableView>
#include <QTextDocument>
#include <QTreeView>

#include "widgets/literals.h"

namespace stagewright {
namespace {

QString cleaned(QString cell)
{
    cell.remove(QChar(0x200b));
    cell.replace(QChar(0xa0), u' ');
    return cell.trimmed();
}

QString csvCell(QString cell)
{
    cell = cleaned(cell);
    cell.replace(QChar(0x2212), u'-');
    if (!cell.contains(QRegularExpression(u"[\",\r\n]"_s))) return cell;
    return u'"' + cell.replace("\""_L1, "\"\""_L1) + u'"';
}

QString markdownCell(QString cell)
{
    cell = cleaned(cell);
    cell.replace(u'\\', "\\\\"_L1).replace(u'|', "\\|"_L1);
    return cell.replace(QRegularExpression(u"\r?\n"_s), u"<br>"_s);
}

bool isFigure(const QString& cell)
{
    static const QRegularExpression figure(u"^[+\\-\u2212]?[0-9]"_s);
    return figure.match(cleaned(cell)).hasMatch();
}

// Columns with at least one filled cell, all of which start like a number.
QVector<bool> figureColumns(const TableText& table)
{
    QVector<bool> figures(table.columns(), false);
    for (int column = 0; column < figures.size(); ++column) {
        int filled = 0;
        const bool all = std::all_of(table.rows.begin(), table.rows.end(), [&](const QStringList& row) {
            const QString cell = cleaned(row.value(column));
            filled += cell.isEmpty() ? 0 : 1;
            return cell.isEmpty() || isFigure(cell);
        });
        figures[column] = all && filled > 0;
    }
    return figures;
}

QString csvText(const TableText& table)
{
    QString text;
    const int columns = table.columns();
    auto line = [&](const QStringList& row) {
        for (int column = 0; column < columns; ++column)
            text += (column > 0 ? u","_s : QString()) + csvCell(row.value(column));
        text += u'\n';
    };
    if (!table.header.isEmpty()) line(table.header);
    for (const QStringList& row : table.rows) line(row);
    return text;
}

QString markdownText(const TableText& table)
{
    QString text;
    if (!table.title.isEmpty()) text += u"**%1**\n\n"_s.arg(markdownCell(table.title));
    const int columns = table.columns();
    auto line = [&](const QStringList& row) {
        text += u'|';
        for (int column = 0; column < columns; ++column) text += u" %1 |"_s.arg(markdownCell(row.value(column)));
        text += u'\n';
    };
    line(table.header);
    text += u'|';
    for (const bool figure : figureColumns(table)) text += figure ? u" ---: |"_s : u" --- |"_s;
    text += u'\n';
    for (const QStringList& row : table.rows) line(row);
    return text;
}

QString htmlText(const TableText& table)
{
    QString text = u"<table>"_s;
    const int columns = table.columns();
    auto line = [&](const QStringList& row, const char* tag) {
        text += u"<tr>"_s;
        for (int column = 0; column < columns; ++column)
            text += u"<%1>%2</%1>"_s.arg(QLatin1String(tag), cleaned(row.value(column)).toHtmlEscaped());
        text += u"</tr>"_s;
    };
    if (!table.header.isEmpty()) line(table.header, "th");
    for (const QStringList& row : table.rows) line(row, "td");
    return text + u"</table>"_s;
}

void addRows(TableText& table, const QAbstractItemModel& model, const QModelIndex& parent, const QVector<int>& columns,
             const QItemSelectionModel* selection)
{
    for (int row = 0; row < model.rowCount(parent); ++row) {
        const QModelIndex first = model.index(row, 0, parent);
        if (selection == nullptr || selection->isRowSelected(row, parent) || selection->isSelected(first)) {
            QStringList cells;
            for (const int column : columns) cells << model.index(row, column, parent).data(Qt::DisplayRole).toString();
            table.rows << cells;
        }
        addRows(table, model, first, columns, selection);
    }
}

TableText tableOfColumns(const QAbstractItemModel& model, const QVector<int>& columns,
                         const QItemSelectionModel* selection)
{
    TableText table;
    for (const int column : columns)
        table.header << model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
    if (std::all_of(table.header.begin(), table.header.end(), [](const QString& title) { return title.isEmpty(); }))
        table.header.clear();
    const bool several =
        selection != nullptr && selection->selectedIndexes().size() > 1 && selection->selectedRows().size() != 1;
    addRows(table, model, {}, columns, several ? selection : nullptr);
    return table;
}

QString textOf(const QWidget* widget)
{
    if (const auto* label = qobject_cast<const QLabel*>(widget)) {
        QString text = label->text();
        if (label->textFormat() == Qt::RichText || (label->textFormat() == Qt::AutoText && Qt::mightBeRichText(text)))
            text.remove(QRegularExpression(u"<[^>]*>"_s));
        return text;
    }
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    return button != nullptr ? button->text().remove(u'&') : QString();
}

// Answers the keys and the context menu of one widget.
class CopyKeys : public QObject {
public:
    CopyKeys(QWidget* widget, std::function<TableText()> table) : QObject(widget), m_table(std::move(table))
    {
        widget->installEventFilter(this);
    }
    TableText table() const { return m_table(); }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override
    {
        if (event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress) {
            auto* key = static_cast<QKeyEvent*>(event);
            const bool markdown =
                key->keyCombination() == QKeyCombination(Qt::ControlModifier | Qt::ShiftModifier, Qt::Key_C);
            if (!markdown && !key->matches(QKeySequence::Copy)) return false;
            event->accept();
            if (event->type() == QEvent::KeyPress)
                copyTable(m_table(), markdown ? TableFormat::Markdown : TableFormat::Csv);
            return true;
        }
        auto* widget = static_cast<QWidget*>(watched);
        if (event->type() == QEvent::ContextMenu && widget->contextMenuPolicy() == Qt::DefaultContextMenu) {
            QMenu menu(widget);
            addCopyActions(&menu, widget, m_table);
            menu.exec(static_cast<QContextMenuEvent*>(event)->globalPos());
            return true;
        }
        return false;
    }

private:
    std::function<TableText()> m_table;
};

class LeaveKeys : public QObject {
public:
    using QObject::QObject;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override
    {
        if (event->type() != QEvent::ShortcutOverride && event->type() != QEvent::KeyPress) return false;
        if (!static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy) ||
            static_cast<QLabel*>(watched)->hasSelectedText())
            return false;
        event->ignore();
        return true;
    }
};

CopyKeys* copyKeysOf(const QWidget* widget)
{
    for (QObject* child : widget->children())
        if (auto* keys = dynamic_cast<CopyKeys*>(child)) return keys;
    return nullptr;
}

} // namespace

int TableText::columns() const
{
    qsizetype most = header.size();
    for (const QStringList& row : rows) most = std::max(most, row.size());
    return static_cast<int>(most);
}

QString toText(const TableText& table, TableFormat format)
{
    return format == TableFormat::Csv ? csvText(table) : markdownText(table);
}

TableText tableOf(const QAbstractItemModel& model, const QItemSelectionModel* selection)
{
    QVector<int> columns;
    for (int column = 0; column < model.columnCount(); ++column) columns << column;
    return tableOfColumns(model, columns, selection);
}

TableText tableOf(const QAbstractItemView& view)
{
    TableText none;
    if (view.model() == nullptr) return none;
    const QHeaderView* header = nullptr;
    if (const auto* grid = qobject_cast<const QTableView*>(&view)) header = grid->horizontalHeader();
    if (const auto* tree = qobject_cast<const QTreeView*>(&view)) header = tree->header();
    QVector<int> columns;
    for (int at = 0; at < view.model()->columnCount(); ++at) {
        const int column = header != nullptr ? header->logicalIndex(at) : at;
        if (column >= 0 && (header == nullptr || !header->isSectionHidden(column))) columns << column;
    }
    TableText table = tableOfColumns(*view.model(), columns, view.selectionModel());
    table.title = view.accessibleName();
    return table;
}

TableText tableOf(const QGridLayout& grid)
{
    TableText table;
    for (int row = 0; row < grid.rowCount(); ++row) {
        QStringList cells;
        const QWidget* last = nullptr;
        for (int column = 0; column < grid.columnCount(); ++column) {
            const QLayoutItem* item = grid.itemAtPosition(row, column);
            const QWidget* widget = item != nullptr ? const_cast<QLayoutItem*>(item)->widget() : nullptr;
            if (widget == nullptr || widget == last || widget->isHidden()) continue;
            last = widget;
            if (const auto* inner = qobject_cast<const QGridLayout*>(widget->layout())) {
                table.rows << tableOf(*inner).rows;
            } else if (qobject_cast<const QLabel*>(widget) != nullptr ||
                       qobject_cast<const QAbstractButton*>(widget) != nullptr) {
                // an empty corner
                if (cells.isEmpty() && column > 0 && grid.itemAtPosition(row, 0) == nullptr) cells << QString();
                cells << textOf(widget);
            }
        }
        if (std::any_of(cells.begin(), cells.end(), [](const QString& cell) { return !cell.isEmpty(); }))
            table.rows << cells;
    }
    return table;
}

void copyTable(const TableText& table, TableFormat format)
{
    if (table.isEmpty()) return;
    auto* data = new QMimeData;
    const QString text = toText(table, format);
    data->setText(text);
    data->setData(format == TableFormat::Csv ? u"text/csv"_s : u"text/markdown"_s, text.toUtf8());
    data->setHtml(htmlText(table));
    QApplication::clipboard()->setMimeData(data);
}

void makeCopyable(QWidget* widget, std::function<TableText()> table) { new CopyKeys(widget, std::move(table)); }

void makeCopyable(QAbstractItemView* view)
{
    makeCopyable(view, [view] { return tableOf(*view); });
}

void addCopyActions(QMenu* menu, QWidget* widget, const std::function<TableText()>& table)
{
    const bool empty = table().isEmpty();
    for (const TableFormat format : {TableFormat::Csv, TableFormat::Markdown}) {
        QAction* action =
            menu->addAction(format == TableFormat::Csv ? u"Copy table as CSV"_s : u"Copy table as Markdown"_s);
        action->setShortcut(format == TableFormat::Csv ? QKeySequence(QKeySequence::Copy)
                                                       : QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C));
        action->setEnabled(!empty);
        QObject::connect(action, &QAction::triggered, widget, [table, format] { copyTable(table(), format); });
    }
}

void leaveCopyToTable(QLabel* label)
{
    label->setContextMenuPolicy(Qt::NoContextMenu);
    label->installEventFilter(new LeaveKeys(label));
}

TableText copyableTable(const QWidget* widget)
{
    for (; widget != nullptr; widget = widget->parentWidget())
        if (const CopyKeys* keys = copyKeysOf(widget)) return keys->table();
    return {};
}

} // namespace stagewright
