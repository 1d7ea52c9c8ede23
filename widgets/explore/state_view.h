// StateView: the explorer's page State, in three topics. ZeRO stages: sliders of the mesh and of what replicas share;
// the four stages of one schedule as stacked bars against the memory of a rank; and time and memory of every schedule,
// cells over the memory hatched. Uneven ranks: batch and state divided among ranks of different speed and memory.
// Partial backward: contributors by layer. It shows answers and announces requests; the explorer's controller simulates. GUI thread only.
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
#include "schedules/survey/partial.h"
#include "schedules/survey/uneven.h"
#include "widgets/explore/state_picture.h"
#include "widgets/explore/survey_fields.h"
#include "widgets/explore/survey_text.h"

class QGridLayout;
class QLabel;

namespace stagewright {

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
    PlotWidget* mixed() { return m_mixed; }
    PlotWidget* cuts() { return m_cuts; }
    const CutAnswer& cutAnswer() const { return m_cutAnswer; }
    QSlider* replicas() { return findChild<QSlider*>(); }
    QLineEdit* speedsField() { return fieldOf<QLineEdit>("speeds"); }
    QLineEdit* memoriesField() { return fieldOf<QLineEdit>("memory"); }
    QSpinBox* batchField() { return fieldOf<QSpinBox>("batch"); }
    QLineEdit* cutsField() { return fieldOf<QLineEdit>("cuts"); }
    void setRows(StateRows rows, const StateQuestion& question);
    void setMixed(std::shared_ptr<const MixedAnswer> answer, const MixedQuestion& question);
    void setMixedError(const QString& text); // instead of an answer
    void setTheme(const Theme& theme);
    SurveyTable answer() const; // the topic's, as its survey has it
    QString caption() const;    // what the topic's picture shows
    Plot plot() const;          // the topic's, as it is shown

signals:
    void questionChanged();

private:
    struct Field { // of the form, in one or more topics
        SurveyControl control;
        std::vector<StateTopic> topics;
    };
    template <typename Widget>
    Widget* fieldOf(const char* name)
    {
        return findChild<Widget*>(QString::fromLatin1(name));
    }
    void addFields(StateTopic topic);
    // The topic's survey with what the form says, and the explorer's shape where it asks for one.
    Result<SurveyQuestion> asked(StateTopic topic, const ExploreQuestion& shape = {}) const;
    void arrange(); // the topic's fields and picture
    void showCuts();

    QTabBar* m_topics;
    QGridLayout* m_form;
    std::vector<Field> m_fields;
    QStackedWidget* m_pictures;
    StatePicture* m_picture;
    PlotWidget* m_mixed;
    PlotWidget* m_cuts;
    std::shared_ptr<const MixedAnswer> m_mixedAnswer; // null: none
    MixedQuestion m_mixedQuestion;
    CutAnswer m_cutAnswer;
};

} // namespace stagewright
