// GlossaryPanel: every term on screen with its definition, other tools' names for it and related terms; with a search
// field. TermGuide: from a label on screen to its terms. GUI thread only.
#pragma once

#include <QWidget>

#include "traces/lessons/glossary.h"

class QLineEdit;
class QListWidget;
class QTextBrowser;

namespace stagewright {

class GlossaryPanel : public QWidget {
    Q_OBJECT
public:
    explicit GlossaryPanel(QWidget* parent = nullptr);
    void showTerm(const QString& id);
    QString shownTerm() const; // id
    QString text() const;      // of the current entry
    void search(const QString& words);
    int found() const; // terms listed

signals:
    void lessonAsked(const QString& id);

private:
    void fill();
    void describe(const lessons::Term* term);

    QLineEdit* m_search;
    QListWidget* m_list;
    QTextBrowser* m_entry;
};

// The words on a widget (label, button, tab, column under the pointer, accessible name), for finding terms in them.
QString wordsOn(const QWidget* widget, const QPoint& at);
// The first term in them, longest first; null: none.
const lessons::Term* termOn(const QWidget* widget, const QPoint& at);

// Adds the glossary's definitions to the tooltips of labels and buttons. One for the application.
class TermGuide : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
};

} // namespace stagewright
