// StateView: the explorer's page State, in three topics. ZeRO stages: sliders of the mesh and of what replicas share;
// the four stages of one schedule as stacked bars against the memory of a rank; and time and memory of every schedule,
// cells over the memory hatched. Uneven ranks: batch and state divided among ranks of different speed and memory
// (mixed_picture.h). Partial backward: contributors by layer (cut_picture.h). It shows answers and announces requests;
// the explorer's controller simulates. GUI thread only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <QLineEdit>
#include <QSlider>
#include <QSpinBox>
#include <QStackedWidget>
#include <QTabBar>
#include <QWidget>

#include "schedules/survey/explore_question.h"
#include "schedules/survey/state.h"
#include "widgets/explore/cut_picture.h"
#include "widgets/explore/mixed_picture.h"
#include "widgets/table_copy.h"
#include "widgets/theme.h"
#include "widgets/themed_widget.h"

class QGridLayout;
class QLabel;

namespace stagewright {

using StateRows = std::shared_ptr<const std::vector<StateRow>>;

// The bars of one schedule and the grid of all. Paints with any painter; keys move over the grid's cells.
class StatePicture : public ThemedWidget {
    Q_OBJECT
public:
    explicit StatePicture(QWidget* parent = nullptr);
    void setRows(StateRows rows, const StateQuestion& question); // null: nothing yet
    void choose(int row, int level);
    int row() const { return m_row; }
    int level() const { return m_level; }
    QRectF cellRect(int row, int level) const; // empty: not shown
    bool over(const StateCell& cell) const;    // more than a rank has
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const;
    QString textOf(int row, int level) const; // of a cell, in a sentence or two
    SurveyTable answer() const;               // every cell that is done
    QSize sizeHint() const override { return {760, 520}; }
    QSize minimumSizeHint() const override { return {420, 260}; }

signals:
    void chosen();
    void activated(const QString& schedule); // Enter or a double click on its row

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    QRectF gridIn(const QRectF& rect) const;
    QRectF cellIn(const QRectF& rect, int row, int level) const;
    std::pair<int, int> cellAt(QPointF point) const; // −1: none
    void paintBars(QPainter& painter, const QRectF& rect, const Theme& theme) const;
    void paintGrid(QPainter& painter, const QRectF& rect, const Theme& theme) const;
    int rowsIn(const QRectF& grid) const;

    StateRows m_rows;
    StateQuestion m_question;
    bool m_chosen = false; // a cell, by the user; before: 1F1B
    int m_row = 0;
    int m_level = 0;
    int m_first = 0; // row at the top of the grid
};

enum class StateTopic {
    Stages,
    Mixed,
    Cuts,
};

class StateView : public QWidget {
    Q_OBJECT
public:
    explicit StateView(QWidget* parent = nullptr);
    StateTopic topic() const;
    void setTopic(StateTopic topic);
    // The question of the topic Stages; the shape is the explorer's.
    StateQuestion question(const ExploreQuestion& shape) const;
    // The question of the topic Mixed; a usage error names the item of a list that can't be read.
    Result<MixedQuestion> mixedQuestion() const;
    CutQuestion cutQuestion() const;
    StatePicture* picture() { return m_picture; }
    MixedPicture* mixed() { return m_mixed; }
    CutPicture* cuts() { return m_cuts; }
    QSlider* replicas() { return findChild<QSlider*>(); }
    QLineEdit* speedsField() { return fieldOf<QLineEdit>("speeds"); }
    QLineEdit* memoriesField() { return fieldOf<QLineEdit>("memory"); }
    QSpinBox* batchField() { return fieldOf<QSpinBox>("batch"); }
    QLineEdit* cutsField() { return fieldOf<QLineEdit>("cuts"); }
    void setRows(StateRows rows, const StateQuestion& question);
    void setTheme(const Theme& theme);
    SurveyTable answer() const; // the topic's, as its survey has it
    QString caption() const;    // what the topic's picture shows
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const;

signals:
    void questionChanged();

private:
    struct Field { // of the form, in one or more topics
        SurveyField field;
        QLabel* label;
        QWidget* widget;
        std::function<std::string()> value;
        std::vector<StateTopic> topics;
    };
    template <typename Widget>
    Widget* fieldOf(const char* name)
    {
        return findChild<Widget*>(QString::fromLatin1(name));
    }
    void addFields(StateTopic topic);
    Field made(const SurveyField& field);
    // The topic's survey with what the form says, and the explorer's shape where it asks for one.
    Result<SurveyQuestion> asked(StateTopic topic, const ExploreQuestion& shape = {}) const;
    void arrange(); // the topic's fields and picture
    void showCuts();

    QTabBar* m_topics;
    QGridLayout* m_form;
    std::vector<Field> m_fields;
    QStackedWidget* m_pictures;
    StatePicture* m_picture;
    MixedPicture* m_mixed;
    CutPicture* m_cuts;
};

} // namespace stagewright
