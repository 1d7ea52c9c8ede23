// LessonShelf: the page of lessons: cards in rows, each with a true miniature of its schedule and its progress, and the
// question of the card under the pointer or with the focus. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include <QAbstractButton>
#include <QWidget>

#include "traces/lessons/progress_file.h"
#include "widgets/lessons/lesson_picture.h"

class QGridLayout;
class QLabel;
class QPushButton;
class QScrollArea;

namespace stagewright {

struct ShelfEntry {
    std::shared_ptr<const lessons::Lesson> lesson;
    lessons::Mark mark = lessons::Mark::None;
    LessonPicture picture;
    QString row;    // "Basics"
    QString after;  // "lesson 5", empty: nothing
    QString figure; // path of the saved figure; may be empty
    QString place;  // path of a teacher's file; empty: built in
};

class LessonCard : public QAbstractButton {
    Q_OBJECT
public:
    LessonCard(const ShelfEntry& entry, QWidget* parent);
    void setEntry(const ShelfEntry& entry);
    void setChosen(bool chosen); // its details are beside the shelf
    void setRecommended(bool next);
    void setTheme(const Theme& theme);
    const ShelfEntry& entry() const { return m_entry; }
    QSize sizeHint() const override { return {220, 132}; }

signals:
    void pointed(); // by pointer or keyboard

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    ShelfEntry m_entry;
    bool m_chosen = false;
    bool m_recommended = false;
    const Theme* m_theme = &Theme::light();
};

class LessonShelf : public QWidget {
    Q_OBJECT
public:
    explicit LessonShelf(QWidget* parent = nullptr);
    // In shelf order, row after row. Keeps the selection.
    void setEntries(std::vector<ShelfEntry> entries);
    void setFaults(const QStringList& faults); // files that could not be read
    void setTheme(const Theme& theme);
    void choose(const QString& id); // and gives the card the focus
    QString chosen() const;         // id of the lesson described at the right
    QString statusText() const;     // "7 of 16 done, 5 verified on this computer"
    const std::vector<LessonCard*>& cards() const { return m_cards; }

signals:
    void startAsked(const QString& id);
    void startOverAsked(const QString& id);
    void openFileAsked();
    void leaveAsked(); // Escape

protected:
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    void rebuild();
    void layOut();
    void describe(const LessonCard* card);
    const LessonCard* recommended() const;

    std::vector<ShelfEntry> m_entries;
    std::vector<LessonCard*> m_cards;
    std::vector<QLabel*> m_titles; // of rows
    QScrollArea* m_scroll;
    QWidget* m_board;
    QWidget* m_detail;
    QLabel *m_question, *m_needs, *m_state, *m_figure, *m_faults;
    QPushButton *m_start, *m_again;
    QString m_chosen;
    const Theme* m_theme = &Theme::light();
};

QString markWords(lessons::Mark mark);
void paintMark(QPainter& painter, QPointF centre, lessons::Mark mark, const Theme& theme);

} // namespace stagewright
