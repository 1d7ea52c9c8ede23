// QueryEditor: a few lines of SQL: highlighted keywords, completed tables and columns (Ctrl+Space, or while typing),
// earlier queries by Ctrl+Up and Ctrl+Down.
#pragma once

#include <utility>

#include <QPlainTextEdit>
#include <QStringList>

#include "widgets/theme.h"

class QCompleter;
class QStringListModel;

namespace stagewright {

using QueryTables = QList<std::pair<QString, QStringList>>; // a table and its columns

class QueryHighlighter;

class QueryEditor : public QPlainTextEdit {
    Q_OBJECT
public:
    explicit QueryEditor(QWidget* parent = nullptr);
    void setTables(const QueryTables& tables);
    void setTheme(const Theme& theme);
    void setHistory(const QStringList& queries)
    {
        m_history = queries;
        m_at = -1;
    }                                                     // newest first
    QStringList completions(const QString& prefix) const; // as offered
    QString wordUnderCursor() const;

signals:
    void runAsked();

protected:
    bool event(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void complete(bool asked);
    void insertCompletion(const QString& word);
    void walkHistory(int by);
    QCompleter* m_completer;
    QStringListModel* m_words; // that it completes
    QueryHighlighter* m_highlighter;
    QStringList m_history;
    int m_at = -1; // −1: what is being written
    QString m_written;
};

} // namespace stagewright
