#include "widgets/console/query_editor.h"

#include <algorithm>

#include <QAbstractItemView>
#include <QCompleter>
#include <QKeyEvent>
#include <QRegularExpression>
#include <QScrollBar>
#include <QSet>
#include <QStringListModel>
#include <QSyntaxHighlighter>
#include <QTextBlock>

#include "widgets/literals.h"

namespace stagewright {
namespace {

const QStringList& keywords()
{
    static const QStringList words{"SELECT",    "FROM",         "WHERE",     "GROUP BY", "ORDER BY", "LIMIT", "JOIN",
                                   "LEFT JOIN", "ON",           "AS",        "AND",      "OR",       "NOT",   "IN",
                                   "IS",        "NULL",         "LIKE",      "BETWEEN",  "DISTINCT", "DESC",  "ASC",
                                   "HAVING",    "WITH",         "CASE",      "WHEN",     "THEN",     "ELSE",  "END",
                                   "OVER",      "PARTITION BY", "UNION ALL", "count(",   "sum(",     "avg(",  "min(",
                                   "max(",      "round(",       "lag(",      "lead(",    "total(",   "abs("};
    return words;
}

} // namespace

class QueryHighlighter : public QSyntaxHighlighter {
public:
    explicit QueryHighlighter(QTextDocument* document) : QSyntaxHighlighter(document) {}
    void setColours(const QColor& keyword, const QColor& name, const QColor& text, const QColor& comment)
    {
        m_keyword = keyword;
        m_name = name;
        m_text = text;
        m_comment = comment;
        rehighlight();
    }
    void setNames(const QStringList& names)
    {
        m_names = QSet<QString>(names.begin(), names.end());
        rehighlight();
    }

protected:
    void highlightBlock(const QString& text) override
    {
        static const QRegularExpression tokens(QStringLiteral(R"((--.*$)|('(?:[^']|'')*'?)|([A-Za-z_]\w*)|(:\w+))"));
        static const QSet<QString> words = [] {
            QSet<QString> all;
            for (const QString& keyword : keywords())
                for (const QString& word : keyword.split(u' ')) all << word.toLower().remove(u'(');
            return all;
        }();
        for (auto it = tokens.globalMatch(text); it.hasNext();) {
            const auto match = it.next();
            QTextCharFormat format;
            if (match.capturedLength(1) > 0)
                format.setForeground(m_comment);
            else if (match.capturedLength(2) > 0)
                format.setForeground(m_text);
            else if (match.capturedLength(4) > 0)
                format.setForeground(m_text);
            else if (words.contains(match.captured(3).toLower())) {
                format.setForeground(m_keyword);
                format.setFontWeight(QFont::DemiBold);
            } else if (m_names.contains(match.captured(3).toLower()))
                format.setForeground(m_name);
            else
                continue;
            setFormat(static_cast<int>(match.capturedStart()), static_cast<int>(match.capturedLength()), format);
        }
    }

private:
    QColor m_keyword, m_name, m_text, m_comment;
    QSet<QString> m_names;
};

QueryEditor::QueryEditor(QWidget* parent)
    : QPlainTextEdit(parent), m_completer(new QCompleter(this)), m_words(new QStringListModel(this)),
      m_highlighter(new QueryHighlighter(document()))
{
    setObjectName(u"query"_s);
    setAcceptDrops(false); // the window handles file drops
    setTabChangesFocus(true);
    setLineWrapMode(QPlainTextEdit::WidgetWidth);
    setAccessibleName(u"SQL query"_s);
    setPlaceholderText(u"SELECT name, duration_ns, span FROM spans WHERE run = :run AND step = :step ORDER BY "
                       "duration_ns DESC LIMIT 20"_s);
    setToolTip(u"One SELECT. Ctrl+Enter runs it, Ctrl+Space completes, Ctrl+Up and Ctrl+Down recall earlier queries.\n"
               ":run and :step stand for the run and the step shown."_s);
    setStyleSheet(u"font-family: \"DejaVu Sans Mono\", monospace; font-size: 12px;"_s);
    m_completer->setModel(m_words); // set once: Qt adds a delegate to the popup with each model
    m_completer->setWidget(this);
    m_completer->setCaseSensitivity(Qt::CaseInsensitive);
    m_completer->setCompletionMode(QCompleter::PopupCompletion);
    m_completer->popup()->setAccessibleName(u"Completions"_s);
    connect(m_completer, QOverload<const QString&>::of(&QCompleter::activated), this, &QueryEditor::insertCompletion);
    setTables({});
    setTheme(Theme::light());
}

void QueryEditor::setTables(const QueryTables& tables)
{
    QStringList words, names;
    for (const auto& [table, columns] : tables) {
        words << table;
        names << table.toLower();
        for (const QString& column : columns) {
            if (!words.contains(column)) words << column;
            names << column.toLower();
        }
    }
    words << keywords();
    words << u":run"_s << u":step"_s;
    m_words->setStringList(words);
    m_highlighter->setNames(names);
}

void QueryEditor::setTheme(const Theme& theme)
{
    m_highlighter->setColours(theme.dark ? theme.accent.lighter(115) : theme.accent, theme.text, theme.better,
                              theme.secondary);
}

QString QueryEditor::wordUnderCursor() const
{
    const QString before = textCursor().block().text().left(textCursor().positionInBlock());
    static const QRegularExpression word(QStringLiteral(R"([:\w]+$)"));
    return word.match(before).captured();
}

QStringList QueryEditor::completions(const QString& prefix) const
{
    m_completer->setCompletionPrefix(prefix);
    QStringList all;
    for (int i = 0; i < m_completer->completionCount(); ++i) {
        m_completer->setCurrentRow(i);
        all << m_completer->currentCompletion();
    }
    return all;
}

void QueryEditor::complete(bool asked)
{
    const QString prefix = wordUnderCursor();
    m_completer->setCompletionPrefix(prefix);
    const int count = m_completer->completionCount();
    if ((!asked && prefix.size() < 2) || count == 0 ||
        (count == 1 && m_completer->currentCompletion().compare(prefix, Qt::CaseInsensitive) == 0)) {
        m_completer->popup()->hide();
        return;
    }
    m_completer->popup()->setCurrentIndex(m_completer->completionModel()->index(0, 0));
    QRect at = cursorRect();
    at.setWidth(m_completer->popup()->sizeHintForColumn(0) +
                m_completer->popup()->verticalScrollBar()->sizeHint().width() + 16);
    m_completer->complete(at);
}

void QueryEditor::insertCompletion(const QString& word)
{
    QTextCursor cursor = textCursor();
    cursor.movePosition(QTextCursor::Left, QTextCursor::KeepAnchor, static_cast<int>(wordUnderCursor().size()));
    cursor.insertText(word);
    setTextCursor(cursor);
}

void QueryEditor::walkHistory(int by)
{
    const int to = std::clamp(m_at + by, -1, static_cast<int>(m_history.size()) - 1);
    if (to == m_at) return;
    if (m_at == -1) m_written = toPlainText();
    m_at = to;
    setPlainText(m_at == -1 ? m_written : m_history.at(m_at));
    moveCursor(QTextCursor::End);
}

bool QueryEditor::event(QEvent* event)
{
    // The window's keys reach a focused text field as letters.
    if (event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool control = key->modifiers().testFlag(Qt::ControlModifier);
        const bool own = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter || key->key() == Qt::Key_Space ||
                         key->key() == Qt::Key_Up || key->key() == Qt::Key_Down;
        if (!key->modifiers().testFlag(Qt::AltModifier) && (!control || own)) {
            event->accept();
            return true;
        }
    }
    return QPlainTextEdit::event(event);
}

void QueryEditor::keyPressEvent(QKeyEvent* event)
{
    const bool control = event->modifiers().testFlag(Qt::ControlModifier);
    const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (m_completer->popup()->isVisible() &&
        (enter || event->key() == Qt::Key_Escape || event->key() == Qt::Key_Tab || event->key() == Qt::Key_Backtab) &&
        !control) {
        if (event->key() == Qt::Key_Tab) {
            insertCompletion(m_completer->currentCompletion());
            m_completer->popup()->hide();
            return;
        }
        event->ignore(); // the list's
        return;
    }
    if (control && enter) {
        m_completer->popup()->hide();
        m_at = -1;
        emit runAsked();
        return;
    }
    if (control && event->key() == Qt::Key_Space) {
        complete(true);
        return;
    }
    if (control && (event->key() == Qt::Key_Up || event->key() == Qt::Key_Down)) {
        walkHistory(event->key() == Qt::Key_Up ? 1 : -1);
        return;
    }
    QPlainTextEdit::keyPressEvent(event);
    const QString text = event->text();
    if (!text.isEmpty() && (text[0].isLetterOrNumber() || text[0] == u'_' || text[0] == u':'))
        complete(false);
    else if (event->key() != Qt::Key_Backspace || m_completer->popup()->isVisible())
        m_completer->popup()->hide();
}

} // namespace stagewright
